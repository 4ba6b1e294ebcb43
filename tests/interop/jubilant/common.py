# Copyright 2026 The Drawbridge authors.
# SPDX-License-Identifier: GPL-3.0-only
"""What the tests with the library jubilant share.

The cluster is up, and JUJULET_STATE names its state folder; JUJULET is the program. Each class of tests works in a model
of its own, which it destroys.
"""

import os
import pathlib
import unittest

import jubilant

JUJULET = os.environ['JUJULET']
CHARMS = pathlib.Path(__file__).resolve().parent / 'charms'


class InModel(unittest.TestCase):
    """A model with testapp and testdb, related."""

    maxDiff = None
    model = ''
    juju: jubilant.Juju

    @classmethod
    def setUpClass(cls):
        cls.juju = jubilant.Juju(cli_binary=JUJULET, wait_timeout=60)
        cls.juju.add_model(cls.model)

    @classmethod
    def tearDownClass(cls):
        cls.juju.destroy_model(cls.model, destroy_storage=True, force=True)
        assert cls.juju.model is None

    @classmethod
    def deploy_both(cls):
        cls.juju.deploy(CHARMS / 'testapp', resources={'workload-image': 'host'}, config={'count': 3})
        cls.juju.deploy(CHARMS / 'testdb', 'db')
        cls.juju.integrate('testapp', 'db:db')
        cls.until(lambda s: s.apps['testapp'].units['testapp/0'].workload_status.message.endswith(':5432'))

    @classmethod
    def until(cls, ready):
        """Wait for a condition, and for everything to be active."""
        return cls.juju.wait(
            lambda s: jubilant.all_active(s) and jubilant.all_agents_idle(s) and ready(s),
            error=jubilant.any_error, delay=0.2, successes=2,
        )

    def message(self):
        return self.juju.status().apps['testapp'].units['testapp/0'].workload_status.message
