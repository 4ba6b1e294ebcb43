# Copyright 2026 The Drawbridge authors.
# SPDX-License-Identifier: GPL-3.0-only
"""Units, charms, relations and applications that come and go; user secrets; temp_model."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import jubilant

from common import CHARMS, JUJULET, InModel


class TestChanges(InModel):
    model = 'changes'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.deploy_both()

    def test_1_units(self):
        self.juju.add_unit('testapp', num_units=2)
        status = self.until(lambda s: len(s.apps['testapp'].units) == 3)
        self.assertEqual(status.apps['testapp'].scale, 3)
        self.juju.remove_unit('testapp', num_units=1)
        self.until(lambda s: sorted(s.apps['testapp'].units) == ['testapp/0', 'testapp/1'])
        self.juju.cli('scale-application', 'testapp', '1')
        self.until(lambda s: sorted(s.apps['testapp'].units) == ['testapp/0'])

    def test_2_refresh(self):
        with tempfile.TemporaryDirectory(dir=CHARMS.parent) as folder:
            changed = pathlib.Path(folder, 'testapp')
            shutil.copytree(CHARMS / 'testapp', changed)
            (changed / 'revision-note').write_text('second\n')
            self.juju.refresh('testapp', path=changed)
            self.until(lambda s: s.apps['testapp'].charm_rev == 1)
        self.assertIn('upgraded to second', self.juju.debug_log())

    def test_3_remove_relation(self):
        self.juju.remove_relation('testapp', 'db')
        status = self.until(lambda s: not s.apps['testapp'].relations)
        self.assertEqual(status.apps['db'].relations, {})

    def test_4_remove_application(self):
        self.juju.remove_application('testapp', 'db', destroy_storage=True)
        self.juju.wait(lambda s: not s.apps, delay=0.2, successes=1)


class TestSecrets(InModel):
    model = 'secrets'

    def test_secrets(self):
        juju = self.juju
        uri = juju.add_secret('token', {'key': 'first', 'other': 'x'}, info='A token.')
        self.assertRegex(uri, r'^secret:[0-9a-v]{20}$')
        with self.assertRaises(jubilant.CLIError) as caught:
            juju.add_secret('token', {'key': 'again'})
        self.assertEqual(caught.exception.stderr, 'ERROR secret with name "token" already exists\n')

        (listed,) = juju.secrets()
        self.assertEqual((listed.uri, listed.revision, listed.owner, listed.name), (uri, 1, '<model>', 'token'))
        self.assertEqual((listed.description, listed.label, listed.rotation, listed.expires), ('A token.', None, None, None))
        self.assertEqual(juju.secrets(owner='application-testapp'), [])
        shown = juju.show_secret('token')
        self.assertEqual((shown.created, shown.access), (shown.updated, None))
        revealed = juju.show_secret(uri, reveal=True)
        self.assertEqual(revealed.content, {'key': 'first', 'other': 'x'})
        self.assertRegex(revealed.checksum, '^[0-9a-f]{64}$')

        juju.deploy(CHARMS / 'testapp', resources={'workload-image': 'host'}, config={'token': uri})
        juju.wait(jubilant.all_blocked, delay=0.2, successes=1)
        self.assertIn('no secret: ERROR permission denied', self.message())
        self.assertEqual(juju.config('testapp')['token'], uri)
        juju.grant_secret('token', 'testapp')
        self.assertEqual([(a.target, a.role) for a in juju.show_secret('token').access], [('application-testapp', 'view')])
        juju.config('testapp', {'greeting': 'granted'})
        self.until(lambda s: s.apps['testapp'].app_status.message == 'greeting=granted secret=first')

        # A new revision is an event for who has read the old one.
        juju.update_secret('token', {'key': 'second'}, info='New.')
        self.until(lambda s: s.apps['testapp'].app_status.message == 'greeting=granted secret=second')
        self.assertEqual(juju.show_secret('token', reveal=True).content, {'key': 'second'})
        self.assertEqual(juju.show_secret('token', reveal=True, revision=1).content, {'key': 'first', 'other': 'x'})
        self.assertEqual([r.revision for r in juju.show_secret('token', revisions=True).revisions], [1, 2])
        self.assertEqual(juju.show_secret(uri).description, 'New.')
        juju.update_secret('token', {'key': 'third'}, name='renamed', auto_prune=True)
        self.until(lambda s: s.apps['testapp'].app_status.message == 'greeting=granted secret=third')
        self.assertEqual([r.revision for r in juju.show_secret('renamed', revisions=True).revisions], [3])

        juju.cli('revoke-secret', 'renamed', 'testapp')
        self.assertIsNone(juju.show_secret('renamed').access)
        juju.remove_secret('renamed')
        self.assertEqual(juju.secrets(), [])
        with self.assertRaises(jubilant.CLIError) as caught:
            juju.show_secret('renamed')
        self.assertEqual(caught.exception.stderr, 'ERROR secret "renamed" not found\n')


class TestHelpers(unittest.TestCase):
    def test_temp_model(self):
        """temp_model calls whatever "juju" is on the PATH."""
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(JUJULET, os.path.join(folder, 'juju'))
            path = os.environ['PATH']
            os.environ['PATH'] = folder + os.pathsep + path
            try:
                with jubilant.temp_model() as juju:
                    model = juju.model
                    self.assertRegex(model, '^jubilant-[0-9a-f]{8}$')
                    self.assertEqual(juju.status().model.name, model)
            finally:
                os.environ['PATH'] = path
        models = subprocess.run([JUJULET, 'models', '--format', 'json'], check=True, capture_output=True, text=True)
        self.assertNotIn(model, models.stdout)
