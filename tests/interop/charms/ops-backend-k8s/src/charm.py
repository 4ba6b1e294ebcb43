#!/usr/bin/env python3
# Copyright 2026 The Drawbridge authors.
# SPDX-License-Identifier: GPL-3.0-only
"""A MariaDB server behind the Python library of data_interfaces, version 1."""

import logging
import secrets
import socket
import time

import ops
import pymysql
from dpcharmlibs.interfaces import (
    RequirerCommonModel,
    ResourceProviderEventHandler,
    ResourceProviderModel,
    ResourceRequestedEvent,
)

logger = logging.getLogger(__name__)

FOLDER = "/srv/mariadb"
INSTALL = f"""mkdir -p {FOLDER} && exec mariadb-install-db --no-defaults --datadir={FOLDER}/data --tmpdir={FOLDER} \\
--user=root --auth-root-authentication-method=socket --skip-test-db --skip-name-resolve --innodb-log-file-size=4M"""
SERVER = (
    f"mariadbd --no-defaults --user=root --datadir={FOLDER}/data --tmpdir={FOLDER} --socket={FOLDER}/socket "
    f"--pid-file={FOLDER}/pid --init-file={FOLDER}/init.sql --port=3306 --skip-name-resolve "
    "--innodb-buffer-pool-size=8M --innodb-log-file-size=4M"
)


class BackendCharm(ops.CharmBase):
    """Runs the server and makes users on it."""

    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        self.container = self.unit.get_container("mariadb")
        self.provider = ResourceProviderEventHandler(self, "database", RequirerCommonModel)
        framework.observe(self.on.mariadb_pebble_ready, self._on_pebble_ready)
        framework.observe(self.provider.on.resource_requested, self._on_requested)
        framework.observe(self.on.database_relation_broken, self._on_broken)
        framework.observe(self.on.collect_unit_status, self._on_collect_status)

    def _on_pebble_ready(self, event: ops.PebbleReadyEvent):
        if not self.container.exists(f"{FOLDER}/password"):
            self.container.exec(["sh", "-c", INSTALL], timeout=60).wait_output()
            password = secrets.token_hex(16)
            account = (
                f"CREATE OR REPLACE USER 'charm'@'127.0.0.1' IDENTIFIED BY '{password}';\n"
                "GRANT ALL PRIVILEGES ON *.* TO 'charm'@'127.0.0.1' WITH GRANT OPTION;\n"
            )
            self.container.push(f"{FOLDER}/init.sql", account, permissions=0o600)
            self.container.push(f"{FOLDER}/password", password, permissions=0o600)
        self.container.add_layer(
            "mariadb",
            {
                "services": {
                    "mariadb": {"override": "replace", "startup": "enabled", "command": SERVER},
                },
                "checks": {
                    "up": {"override": "replace", "level": "ready", "period": "1s", "tcp": {"port": 3306}},
                },
            },
            combine=True,
        )
        self.container.replan()
        for _ in range(100):  # until it answers: no hook comes by itself when it does
            try:
                self._admin().close()
                break
            except pymysql.Error:
                time.sleep(0.1)

    def _admin(self):
        password = self.container.pull(f"{FOLDER}/password").read()
        return pymysql.connect(host="127.0.0.1", port=3306, user="charm", password=password, autocommit=True)

    def _on_requested(self, event: ResourceRequestedEvent):
        try:
            connection = self._admin()
        except (ops.pebble.Error, pymysql.Error) as error:
            logger.info("the server does not answer yet: %s", error)
            event.defer()
            return
        request = event.request
        username, password = f"relation-{event.relation.id}", secrets.token_hex(16)
        with connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{request.resource}`")
            cursor.execute(f"CREATE OR REPLACE USER '{username}'@'%' IDENTIFIED BY '{password}'")
            if request.extra_user_roles == "mysqlrouter":
                cursor.execute(f"GRANT ALL PRIVILEGES ON *.* TO '{username}'@'%' WITH GRANT OPTION")
            else:
                cursor.execute(f"GRANT ALL PRIVILEGES ON `{request.resource}`.* TO '{username}'@'%'")
            cursor.execute("SELECT VERSION()")
            version = cursor.fetchone()[0]
        address = f"{socket.getfqdn()}:3306"
        self.provider.set_response(
            event.relation.id,
            ResourceProviderModel(
                request_id=request.request_id,
                salt=request.salt,
                resource=request.resource,
                username=username,
                password=password,
                endpoints=address,
                read_only_endpoints=address,
                version=version,
            ),
        )

    def _on_broken(self, event: ops.RelationBrokenEvent):
        """The library leaves users and secrets of a relation that is gone to the charm."""
        with self._admin() as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP USER IF EXISTS 'relation-{event.relation.id}'@'%'")
        if self.unit.is_leader():
            for group in ("user", "tls"):
                try:
                    self.model.get_secret(label=f"database.{event.relation.id}.{group}.secret").remove_all_revisions()
                except ops.SecretNotFoundError:
                    pass

    def _on_collect_status(self, event: ops.CollectStatusEvent):
        if not self.container.can_connect():
            event.add_status(ops.WaitingStatus("waiting for the container"))
            return
        try:
            self._admin().close()
        except (ops.pebble.Error, pymysql.Error):
            event.add_status(ops.MaintenanceStatus("the server starts"))
            return
        event.add_status(ops.ActiveStatus())


if __name__ == "__main__":
    ops.main(BackendCharm)
