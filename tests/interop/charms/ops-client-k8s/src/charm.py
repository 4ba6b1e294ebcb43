#!/usr/bin/env python3
# Copyright 2026 The Drawbridge authors.
# SPDX-License-Identifier: GPL-3.0-only
"""A client of a MySQL database, on the Python library of data_interfaces, version 1."""

import json
import logging

import ops
import pymysql
from dpcharmlibs.interfaces import RequirerCommonModel, ResourceProviderModel, ResourceRequirerEventHandler

logger = logging.getLogger(__name__)

EVENTS = (
    "resource_created",
    "resource_entity_created",
    "endpoints_changed",
    "read_only_endpoints_changed",
    "authentication_updated",
)


class ClientCharm(ops.CharmBase):
    """Asks for the database `orders` and says what it got."""

    _stored = ops.StoredState()

    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        self._stored.set_default(events=[])
        self.database = ResourceRequirerEventHandler(
            self,
            "database",
            [RequirerCommonModel(resource="orders", external_node_connectivity=True)],
            response_model=ResourceProviderModel,
        )
        for name in EVENTS:
            framework.observe(getattr(self.database.on, name), self._on_event)
        framework.observe(self.on.report_action, self._on_report)
        framework.observe(self.on.query_action, self._on_query)
        framework.observe(self.on.collect_unit_status, self._on_collect_status)

    def _on_event(self, event):
        self._stored.events.append(json.dumps({"event": event.handle.kind, **self._describe(event.response)}))
        logger.info("saw %s.", event.handle.kind)

    @staticmethod
    def _describe(response):
        return {
            "resource": response.resource,
            "endpoints": response.endpoints or "",
            "read-only-endpoints": response.read_only_endpoints or "",
            "username": response.username or "",
            "password-length": len(response.password or ""),
            "tls": str(response.tls),
            "version": response.version or "",
        }

    def _response(self):
        """What the library reads out of the provider's databag and its secrets now."""
        relation = self.model.get_relation("database")
        if relation is None or relation.app is None:
            return None
        model = self.database.interface.build_model(relation.id, component=relation.app)
        for response in model.requests:
            if self.database.is_resource_created(relation.id, response.request_id, model):
                return response
        return None

    def _on_report(self, event: ops.ActionEvent):
        response = self._response()
        event.set_results({
            "events": json.dumps([json.loads(text) for text in self._stored.events]),
            "now": json.dumps(self._describe(response) if response else None),
        })

    def _on_query(self, event: ops.ActionEvent):
        response = self._response()
        if response is None:
            event.fail("no database")
            return
        text = response.endpoints if event.params["endpoints"] == "read-write" else response.read_only_endpoints
        rows = {}
        for endpoint in text.split(","):
            host, _, port = endpoint.rpartition(":")
            connection = pymysql.connect(
                host=host, port=int(port), user=response.username, password=response.password,
                database=response.resource, connect_timeout=10, autocommit=True,
            )
            with connection, connection.cursor() as cursor:
                for statement in event.params["sql"].split(";"):
                    cursor.execute(statement)
                rows[endpoint] = cursor.fetchall()
        event.set_results({"rows": json.dumps(rows)})

    def _on_collect_status(self, event: ops.CollectStatusEvent):
        event.add_status(ops.ActiveStatus() if self._response() else ops.WaitingStatus("no database"))


if __name__ == "__main__":
    ops.main(ClientCharm)
