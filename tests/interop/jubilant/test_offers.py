# Copyright 2026 The Drawbridge authors.
# SPDX-License-Identifier: GPL-3.0-only
"""Two models: an offer, and who consumes it."""

import jubilant

from common import CHARMS, JUJULET, InModel


class TestOffers(InModel):
    model = 'consumer'

    def test_offer_and_consume(self):
        other = jubilant.Juju(cli_binary=JUJULET, wait_timeout=60)
        other.add_model('offerer')
        try:
            other.deploy(CHARMS / 'testdb', 'db')
            other.offer('db', endpoint='db', name='shared')
            self.juju.deploy(CHARMS / 'testapp', resources={'workload-image': 'host'})
            self.juju.consume('offerer.shared', 'remote')
            self.juju.integrate('testapp', 'remote')
            status = self.until(lambda s: s.apps['testapp'].app_status.message.endswith('endpoint=offerer.example:5432'))
            remote = status.app_endpoints['remote']
            self.assertRegex(remote.url, r'offerer\.shared$')
            self.assertEqual((remote.endpoints['db'].interface, remote.endpoints['db'].role), ('demo', 'provider'))
            self.assertEqual(remote.relations, {'db': ['testapp']})
            offer = other.status().offers['shared']
            self.assertEqual((offer.app, offer.charm), ('db', 'local:testdb-0'))
            self.assertEqual((offer.total_connected_count, offer.active_connected_count), (1, 1))
            self.assertEqual((offer.endpoints['db'].interface, offer.endpoints['db'].role), ('demo', 'provider'))
            (relation,) = self.juju.show_unit('testapp/0').relation_info
            self.assertTrue(relation.cross_model)
            self.juju.remove_relation('testapp', 'remote')
            self.until(lambda s: not s.apps['testapp'].relations)
            self.juju.cli('remove-saas', 'remote')
            self.juju.wait(lambda s: not s.app_endpoints, delay=0.2, successes=1)
        finally:
            other.destroy_model('offerer', destroy_storage=True, force=True)
