#!/usr/bin/env python3
# Copyright 2026 The Drawbridge authors.
# SPDX-License-Identifier: GPL-3.0-only
"""All that a charm on ops does, in one, and what came of it in the action `report`."""

import datetime
import io
import json
import logging
import os

import lightkube
import ops
from lightkube.core.exceptions import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Service

logger = logging.getLogger(__name__)

LABEL = "shared"
NOTICE = "drawbridge.example/hello"
HEALTHY = "/srv/work/healthy"


class SurfaceCharm(ops.CharmBase):
    """Keeps what it sees."""

    _stored = ops.StoredState()

    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        self._stored.set_default(events=[], deferred=0, seen={}, tokens=[])
        self.work = self.unit.get_container("work")
        for name in self.on.events():
            if name.startswith("collect_") or name.endswith("_action"):
                continue
            framework.observe(getattr(self.on, name), self._record)
        for name, handler in {
            "config_changed": self._on_config_changed,
            "leader_elected": self._on_config_changed,
            "side_relation_created": self._on_side,
            "link_relation_changed": self._on_link_changed,
            "secret_changed": self._on_secret_changed,
            "secret_remove": self._on_secret_remove,
            "secret_expired": self._on_secret_remove,
            "work_pebble_ready": self._on_pebble_ready,
            "collect_unit_status": self._on_unit_status,
            "collect_app_status": self._on_app_status,
        }.items():
            framework.observe(getattr(self.on, name), handler)
        for name in self.meta.actions:
            framework.observe(self.on[name].action, getattr(self, f"_on_{name}"))

    # What happened.

    def _record(self, event):
        """Keep the name of an event, and what of it matters."""
        name = event.handle.kind
        if isinstance(event, ops.RelationEvent):
            name += f" {event.relation.name} {event.app.name} {event.unit.name if event.unit else '-'}"
        if isinstance(event, ops.RelationDepartedEvent):
            name += f" departing={event.departing_unit.name}"
        if isinstance(event, ops.SecretEvent):
            name += f" {event.secret.label}"
        if isinstance(event, (ops.SecretRemoveEvent, ops.SecretExpiredEvent)):
            name += f" {event.revision}"
        if isinstance(event, ops.PebbleNoticeEvent):
            name += f" {event.workload.name} {event.notice.key} {event.notice.type.value}"
        elif isinstance(event, ops.PebbleCheckEvent):
            name += f" {event.workload.name} {event.info.name} {event.info.status.value}"
        elif isinstance(event, ops.WorkloadEvent):
            name += f" {event.workload.name}"
        self._stored.events.append(name)
        logger.info("saw %s.", name)

    # Config and relations.

    def _on_config_changed(self, _):
        peers = self.model.get_relation("crew")
        if peers is None:
            return
        peers.data[self.unit]["greeting"] = f"{self.config['greeting']} from {self.unit.name}"
        if self.unit.is_leader():
            peers.data[self.app]["chosen"] = self.config["greeting"]
            for relation in self.model.relations["side"]:
                relation.data[self.app]["greeting"] = self.config["greeting"]

    def _on_side(self, event: ops.RelationCreatedEvent):
        event.relation.data[self.unit]["address"] = str(self.model.get_binding(event.relation).network.bind_address)
        if not self.unit.is_leader():
            return
        secret = self.app.add_secret({"token": "first"}, label=LABEL, description="of the relation side", rotate=ops.SecretRotate.DAILY)
        secret.grant(event.relation)
        event.relation.data[self.app].update({"secret": secret.id, "greeting": self.config["greeting"]})

    def _on_link_changed(self, event: ops.RelationChangedEvent):
        if not self.config["accept"]:
            self._stored.deferred += 1
            logger.info("saw a change deferred.")
            event.defer()
            return
        self._stored.events.append("accepted")
        logger.info("saw accepted.")
        data = event.relation.data
        self._stored.seen["app"] = json.dumps(dict(data[event.app]))
        if event.unit is not None:
            self._stored.seen[event.unit.name] = json.dumps(dict(data[event.unit]))
        if uri := data[event.app].get("secret"):
            secret = self.model.get_secret(id=uri, label="theirs")
            if not self._stored.tokens:
                self._stored.tokens.append(secret.get_content()["token"])

    def _on_secret_changed(self, event: ops.SecretChangedEvent):
        before = event.secret.get_content()["token"]
        peeked = event.secret.peek_content()["token"]
        after = event.secret.get_content(refresh=True)["token"]
        self._stored.tokens.append(f"{before}>{peeked}>{after}")

    def _on_secret_remove(self, event: ops.SecretRemoveEvent | ops.SecretExpiredEvent):
        event.remove_revision()

    # Pebble.

    def _on_pebble_ready(self, event: ops.PebbleReadyEvent):
        self.work.push(HEALTHY, "yes", make_dirs=True)
        self.work.add_layer(
            "work",
            {
                "summary": "one service, one check",
                "services": {
                    "sleeper": {
                        "override": "replace",
                        "startup": "enabled",
                        "command": "sh -c 'echo ready for $WHO; exec sleep infinity'",
                        "environment": {"WHO": self.unit.name},
                    },
                },
                "checks": {
                    "healthy": {
                        "override": "replace",
                        "period": "500ms",
                        "threshold": 2,
                        "exec": {"command": f"test -e {HEALTHY}"},
                    },
                },
            },
            combine=True,
        )
        self.work.replan()
        self.unit.set_workload_version("1.2.3")
        self.unit.set_ports(8080, ops.Port("tcp", 9090))

    def _on_pebble(self, event: ops.ActionEvent):
        results = {}
        self.work.push("/srv/work/a/b.txt", io.StringIO("text\n"), make_dirs=True, permissions=0o640)
        results["pulled"] = self.work.pull("/srv/work/a/b.txt").read()
        info = self.work.list_files("/srv/work/a")[0]
        results["listed"] = f"{info.name} {info.type.value} {oct(info.permissions)} {info.size}"
        self.work.make_dir("/srv/work/c/d", make_parents=True)
        results["is-dir"] = str(self.work.isdir("/srv/work/c/d"))
        self.work.remove_path("/srv/work/a", recursive=True)
        results["exists"] = str(self.work.exists("/srv/work/a/b.txt"))
        process = self.work.exec(
            ["sh", "-c", "cat; echo on stderr >&2; pwd; echo $X"], stdin="in\n", working_dir="/srv", environment={"X": "y"},
        )
        out, err = process.wait_output()
        results["out"], results["err"] = out, err
        try:
            self.work.exec(["sh", "-c", "echo no >&2; exit 3"]).wait_output()
        except ops.pebble.ExecError as error:
            results["exec-error"] = f"{error.exit_code} {error.stderr}"
        try:
            self.work.pull("/srv/nothing")
        except ops.pebble.PathError as error:
            results["path-error"] = error.kind
        results["before"] = self.work.get_service("sleeper").current.value
        self.work.stop("sleeper")
        results["stopped"] = self.work.get_service("sleeper").current.value
        self.work.start("sleeper")
        self.work.restart("sleeper")
        results["after"] = self.work.get_service("sleeper").current.value
        self.work.send_signal("SIGHUP", "sleeper")
        plan = self.work.get_plan()
        results["plan"] = ",".join(sorted([*plan.services, *plan.checks]))
        check = self.work.get_check("healthy")
        results["check"] = f"{check.status.value} {check.threshold}"
        event.set_results(results)

    def _on_notify(self, event: ops.ActionEvent):
        self.work.exec(["/charm/bin/pebble", "notify", NOTICE, "who=work"]).wait_output()
        notices = [n for n in self.work.get_notices(keys=[NOTICE])]
        event.set_results({"notices": str(len(notices)), "who": notices[0].last_data["who"]})

    def _on_health(self, event: ops.ActionEvent):
        if event.params["up"]:
            self.work.push(HEALTHY, "yes")
        else:
            self.work.remove_path(HEALTHY)

    # Statuses.

    def _on_unit_status(self, event: ops.CollectStatusEvent):
        if not self.work.can_connect():
            event.add_status(ops.WaitingStatus("waiting for the container"))
        elif self.work.get_checks("healthy") and self.work.get_check("healthy").status is ops.pebble.CheckStatus.DOWN:
            event.add_status(ops.BlockedStatus("the workload is not healthy"))
        if not self.config["accept"]:
            event.add_status(ops.MaintenanceStatus("not accepting"))
        event.add_status(ops.ActiveStatus(f"count={self.config['count']}"))

    def _on_app_status(self, event: ops.CollectStatusEvent):
        event.add_status(ops.ActiveStatus(f"{self.app.planned_units()} planned"))

    # Actions.

    def _on_report(self, event: ops.ActionEvent):
        peers = self.model.get_relation("crew")
        crew = {unit.name: peers.data[unit].get("greeting", "") for unit in sorted(peers.units | {self.unit}, key=str)}
        token = self.config.get("token")
        event.set_results({
            "token": self.model.get_secret(id=token).get_content()["token"] if token else "",
            "events": json.dumps(list(self._stored.events)),
            "deferred": str(self._stored.deferred),
            "seen": json.dumps(dict(self._stored.seen)),
            "tokens": json.dumps(list(self._stored.tokens)),
            "config": json.dumps(dict(self.config), sort_keys=True),
            "crew": json.dumps(crew),
            "chosen": peers.data[self.app].get("chosen", ""),
            "model": self.model.name,
            "leader": str(self.unit.is_leader()),
            "ports": ",".join(sorted(f"{p.port}/{p.protocol}" for p in self.unit.opened_ports())),
        })

    def _on_echo(self, event: ops.ActionEvent):
        event.log(f"echoing {event.params['text']}")
        event.set_results({"text": event.params["text"], "nested": {"number": event.params["number"], **event.params.get("nested", {})}})

    def _on_fail(self, event: ops.ActionEvent):
        event.set_results({"half": "done"})
        event.fail("as asked")

    def _on_crash(self, event: ops.ActionEvent):
        self._stored.events.append("crashed")
        raise RuntimeError("as asked")

    def _on_revise(self, event: ops.ActionEvent):
        secret = self.model.get_secret(label=LABEL)
        secret.set_content({"token": event.params["token"]})
        info = secret.get_info()
        event.set_results({
            "was": secret.peek_content()["token"],
            "info": f"{info.label} {info.rotation.value} {info.rotates is not None} {info.description}",
        })

    def _on_expire(self, event: ops.ActionEvent):
        self.unit.add_secret(
            {"token": "soon gone"}, label="short",
            expire=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=3),
        )

    def _on_kube(self, event: ops.ActionEvent):
        client = lightkube.Client(field_manager=self.app.name)
        try:
            names = sorted(s.metadata.name for s in client.list(Service, namespace=self.model.name))
            patched = client.patch(
                Service, self.app.name, {"metadata": {"annotations": {"drawbridge.example/by": self.unit.name}}},
                namespace=self.model.name,
            )
            client.apply(
                ConfigMap(metadata=ObjectMeta(name=f"{self.app.name}-surface", namespace=self.model.name), data={"by": self.unit.name})
            )
            read = client.get(ConfigMap, f"{self.app.name}-surface", namespace=self.model.name).data["by"]
        except ApiError as error:
            event.fail(f"{error.status.code}: {error.status.message}")
            return
        event.set_results({
            "services": json.dumps(names),
            "config-map": read,
            "annotation": patched.metadata.annotations["drawbridge.example/by"],
            "cluster-ip": client.get(Service, self.app.name, namespace=self.model.name).spec.clusterIP,
        })


if __name__ == "__main__":
    ops.main(SurfaceCharm, use_juju_for_storage=os.environ["JUJU_UNIT_NAME"].startswith("observer/"))
