# Copyright 2026 The Drawbridge authors.
# SPDX-License-Identifier: GPL-3.0-only
"""One model: each method of jubilant that a test of a Kubernetes charm calls, but those that change much."""

import json
import os
import pathlib
import tempfile

import jubilant

from common import InModel


class TestModel(InModel):
    model = 'basics'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.deploy_both()

    def test_version(self):
        version = self.juju.version()
        self.assertEqual(version.tuple, (3, 6, 11))
        self.assertRegex(str(version), r'^3\.6\.11-genericlinux-\w+$')

    def test_status(self):
        status = self.juju.status()
        self.assertEqual(status.model.name, 'basics')
        self.assertEqual(status.model.type, 'caas')
        self.assertEqual(status.model.version, '3.6.11')
        self.assertEqual(status.model.model_status.current, 'available')
        self.assertEqual(status.machines, {})
        self.assertNotEqual(status.controller.timestamp, '')
        app = status.apps['testapp']
        self.assertEqual((app.charm_name, app.charm_origin, app.charm_rev, app.exposed), ('testapp', 'local', 0, False))
        self.assertEqual((app.base.name, app.base.channel), ('ubuntu', '22.04'))
        self.assertEqual((app.scale, app.version, app.app_status.current), (1, '1.2.3', 'active'))
        self.assertRegex(app.provider_id, r'^[0-9a-f]{8}-[0-9a-f-]{27}$')
        self.assertRegex(app.address, r'^10\.152\.183\.\d+$')
        self.assertEqual(app.endpoint_bindings, {'': 'alpha', 'db': 'alpha'})
        self.assertEqual([(r.related_app, r.interface, r.scope) for r in app.relations['db']], [('db', 'demo', 'global')])
        unit = app.units['testapp/0']
        self.assertTrue(unit.is_active and unit.leader)
        self.assertEqual((unit.juju_status.current, unit.juju_status.version), ('idle', '3.6.11'))
        self.assertEqual(unit.provider_id, 'testapp-0')
        self.assertRegex(unit.address, r'^10\.1\.\d+\.\d+$')
        self.assertEqual(status.apps['db'].units['db/0'].open_ports, ['5432/tcp'])

    def test_status_storage(self):
        storage = self.juju.status().storage
        info = storage.storage['data/0']
        self.assertEqual((info.kind, info.status.current), ('filesystem', 'attached'))
        self.assertEqual(info.attachments.units['db/0'].location, '/srv/data')
        self.assertEqual([f.storage for f in storage.filesystems.values()], ['data/0'])

    def test_show_model(self):
        info = self.juju.show_model()
        self.assertEqual((info.short_name, info.model_type, info.is_controller, info.life), ('basics', 'caas', False, 'alive'))
        self.assertEqual(info.name.rsplit('/')[-1], 'basics')
        self.assertEqual(info.agent_version, '3.6.11')
        self.assertEqual(info.status.current, 'available')

    def test_config(self):
        before = self.juju.config('testapp')
        self.assertEqual(before, {'greeting': 'hello', 'count': 3, 'ratio': 0.5, 'enabled': True})
        self.juju.config('testapp', {'greeting': 'hi there', 'enabled': False, 'ratio': 1.5})
        self.until(lambda s: 'greeting=hi there' in s.apps['testapp'].app_status.message)
        self.assertEqual(self.juju.config('testapp'), {'greeting': 'hi there', 'count': 3, 'ratio': 1.5, 'enabled': False})
        self.juju.config('testapp', reset=['greeting', 'ratio', 'enabled'])
        self.until(lambda s: 'greeting=hello' in s.apps['testapp'].app_status.message)
        self.assertEqual(self.juju.config('testapp'), before)
        self.assertEqual(self.juju.config('testapp', app_config=True), {'trust': False})
        with self.assertRaises(jubilant.CLIError) as caught:
            self.juju.config('testapp', {'count': 'many'})
        self.assertEqual(caught.exception.returncode, 1)
        self.assertEqual(caught.exception.stderr, 'ERROR option "count" expected int, got "many"\n')

    def test_trust(self):
        self.juju.trust('testapp', scope='cluster')
        self.assertEqual(self.juju.config('testapp', app_config=True), {'trust': True})
        self.juju.trust('testapp', remove=True, scope='cluster')
        self.assertEqual(self.juju.config('testapp', app_config=True), {'trust': False})

    def test_run(self):
        task = self.juju.run('testapp/0', 'echo', {'text': 'some: text', 'number': 7})
        self.assertTrue(task.success)
        self.assertEqual((task.status, task.return_code), ('completed', 0))
        self.assertEqual(task.results, {'text': 'some: text', 'number': '7', 'nested': {'key': 'value'}})
        self.assertEqual((task.stdout, task.stderr), ('to stdout\n', 'to stderr\n'))
        self.assertEqual(len(task.log), 1)
        self.assertRegex(task.log[0], r'^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} \S+ echoing$')
        self.assertEqual(self.juju.run('testapp/leader', 'echo', {'text': 'x'}).results['text'], 'x')

    def test_run_failures(self):
        with self.assertRaises(jubilant.TaskError) as caught:
            self.juju.run('testapp/0', 'fail')
        task = caught.exception.task
        self.assertEqual((task.status, task.message, task.results), ('failed', 'failed as asked', {'reason': 'asked'}))
        with self.assertRaises(jubilant.TaskError) as caught:
            self.juju.run('testapp/0', 'crash')
        self.assertEqual((caught.exception.task.status, caught.exception.task.return_code), ('failed', 3))
        with self.assertRaises(jubilant.TaskError) as caught:
            self.juju.run('testapp/0', 'echo')
        self.assertEqual(caught.exception.task.status, 'failed')
        with self.assertRaisesRegex(ValueError, 'action "nope" not defined on unit "testapp/0"'):
            self.juju.run('testapp/0', 'nope')
        with self.assertRaisesRegex(ValueError, 'unit "testapp/9" not found'):
            self.juju.run('testapp/9', 'echo', {'text': 'x'})
        with self.assertRaisesRegex(TimeoutError, 'timed out waiting for results from: unit testapp/0'):
            self.juju.run('testapp/0', 'slow', wait=0.5)
        operations = json.loads(self.juju.cli('operations', '--actions', 'slow', '--format', 'json'))
        (operation,) = operations.values()
        self.assertEqual((operation['summary'], operation['status']), ('slow run on unit-testapp-0', 'running'))
        (task_id,) = operation['tasks']
        cancelled = json.loads(self.juju.cli('cancel-task', task_id, '--format', 'json'))
        self.assertEqual([(a['id'], a['status'], a['unit']) for a in cancelled['actions']], [(task_id, 'aborting', 'testapp/0')])
        shown = json.loads(self.juju.cli('show-task', task_id, '--format', 'json', '--wait', '20s'))
        self.assertEqual((shown['status'], shown['unit']), ('aborted', 'testapp/0'))

    def test_exec(self):
        task = self.juju.exec('echo "$JUJU_UNIT_NAME"', unit='testapp/0')
        self.assertEqual((task.status, task.stdout, task.return_code), ('completed', 'testapp/0\n', 0))
        self.assertEqual(self.juju.exec('relation-ids', 'db', unit='testapp/leader', wait=20).stdout.strip()[:3], 'db:')
        with self.assertRaises(jubilant.TaskError) as caught:
            self.juju.exec('echo oops >&2; exit 4', unit='testapp/0')
        self.assertEqual((caught.exception.task.return_code, caught.exception.task.stderr), (4, 'oops\n'))
        with self.assertRaises(ValueError):
            self.juju.exec('true', unit='testapp/9')
        with self.assertRaises(TimeoutError):
            self.juju.exec('sleep 3', unit='testapp/0', wait=0.5)
        with self.assertRaisesRegex(jubilant.CLIError, 'returned non-zero') as caught:
            self.juju.exec('true', machine=0)
        self.assertIn('unable to target machines', caught.exception.stderr)

    def test_show_unit(self):
        info = self.juju.show_unit('testapp/0')
        self.assertEqual((info.charm, info.leader, info.workload_version), ('local:testapp-0', True, '1.2.3'))
        self.assertEqual((info.opened_ports, info.provider_id, info.life), ([], 'testapp-0', 'alive'))
        (relation,) = info.relation_info
        self.assertEqual((relation.endpoint, relation.related_endpoint, relation.cross_model), ('db', 'db', False))
        self.assertEqual(relation.app_data, {'endpoint': 'basics.example:5432'})
        self.assertTrue(relation.local_unit.in_scope)
        self.assertEqual(list(relation.related_units), ['db/0'])
        self.assertIn('ingress-address', relation.related_units['db/0'].data)

    def test_debug_log(self):
        log = self.juju.debug_log()
        self.assertIn('unit-testapp-0: ', log)
        self.assertEqual(len(self.juju.debug_log(limit=3).splitlines()), 3)

    def test_ssh_and_scp(self):
        self.assertEqual(self.juju.ssh('testapp/0', 'echo', '"a  b"', '&&', 'pwd').splitlines()[0], 'a  b')
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, 'file')
            source.write_text('content\n')
            self.juju.scp(source, 'testapp/0:/tmp/there', container='workload')
            self.assertEqual(self.juju.ssh('testapp/0', 'cat /tmp/there', container='workload', host_key_checks=False), 'content\n')
            self.juju.scp('testapp/leader:/tmp/there', folder, container='workload', host_key_checks=False)
            self.assertEqual(pathlib.Path(folder, 'there').read_text(), 'content\n')
            tree = pathlib.Path(folder, 'tree', 'below')
            tree.mkdir(parents=True)
            (tree / 'script').write_text('#!/bin/sh\necho run\n')
            (tree / 'script').chmod(0o755)
            self.juju.scp(tree.parent, 'testapp/0:/tmp')
            self.assertEqual(self.juju.ssh('testapp/0', '/tmp/tree/below/script'), 'run\n')
            self.juju.scp('testapp/0:/tmp/tree', pathlib.Path(folder, 'back'))
            self.assertEqual(pathlib.Path(folder, 'back', 'below', 'script').read_text(), '#!/bin/sh\necho run\n')
            self.assertTrue(os.access(pathlib.Path(folder, 'back', 'below', 'script'), os.X_OK))
            # Hooks go on in the pod, and the file is not in the charm's container.
            with self.assertRaises(jubilant.CLIError) as caught:
                self.juju.ssh('testapp/0', 'cat /tmp/there')
            self.assertEqual(caught.exception.returncode, 1)
            self.assertIn('ERROR command terminated with exit code 1', caught.exception.stderr)

    def test_model_config(self):
        self.assertEqual(self.juju.model_config()['update-status-hook-interval'], '5m')
        self.juju.model_config({'update-status-hook-interval': '10m'})
        self.assertEqual(self.juju.model_config()['update-status-hook-interval'], '10m')
        self.juju.model_config(reset='update-status-hook-interval')
        self.assertEqual(self.juju.model_config()['update-status-hook-interval'], '5m')
        self.assertEqual(self.juju.model_constraints(), {})

    def test_errors(self):
        for args, code, text in (
            (('deploy', 'mysql-k8s'), 1, 'charms of a store are not supported'),
            (('integrate', 'testapp', 'nope'), 1, 'application "nope" not found'),
            (('status', '--no-such-flag'), 2, 'option provided but not defined: --no-such-flag'),
            (('remove-application', '--no-prompt', 'nope'), 1, 'application "nope" not found'),
            (('show-unit', 'testapp/7'), 1, 'unit "testapp/7" not found'),
        ):
            with self.subTest(args), self.assertRaises(jubilant.CLIError) as caught:
                self.juju.cli(*args)
            self.assertEqual(caught.exception.returncode, code)
            self.assertRegex(caught.exception.stderr, '^ERROR ')
            self.assertIn(text, caught.exception.stderr)

    def test_refusals(self):
        for call in (
            lambda: self.juju.bootstrap('lxd', 'ctl'),
            lambda: self.juju.add_machine(),
            lambda: self.juju.add_ssh_key('ssh-rsa AAAA'),
            lambda: self.juju.model_constraints({'mem': '8G'}),
            lambda: self.juju.add_cloud('c', {'clouds': {}}, client=True),
        ):
            with self.assertRaises(jubilant.CLIError) as caught:
                call()
            self.assertEqual(caught.exception.returncode, 1)
            self.assertRegex(caught.exception.stderr, '^ERROR [a-z-]+ is not supported here: ')
