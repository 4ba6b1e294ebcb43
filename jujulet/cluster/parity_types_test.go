// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// withIngress are the steps to a LoadBalancer Service that has an address.
func withIngress(more ...step) []step {
	return append([]step{
		{do: apply(service("LoadBalancer")), want: "201 ip=ip1 np.mysql-rw=np1 np.mysql-ro=np2 allocate=true"},
		{do: ingress(`[{"ip":"10.64.140.43"}]`), want: "200 lb=10.64.140.43//VIP"},
	}, more...)
}

// TestParity_Types: what applying one of the three types does to a Service of another.
func TestParity_Types(t *testing.T) {
	t.Parallel()
	tell(t, []story{
		{"absent to ClusterIP", []step{
			{do: apply(service("ClusterIP")), want: "201 type=ClusterIP ip=ip1 families=SingleStack family=IPv4 internal=Cluster affinity=None external= np.mysql-rw= generation= managers=drawbridge-k8s:Apply"},
		}},
		{"the same again", []step{
			{do: apply(service("ClusterIP")), want: "201"},
			{do: apply(service("ClusterIP")), want: "200 rv=same ip=ip1"},
			{do: apply(service("NodePort")), want: "200 rv=changed np.mysql-rw=np1"},
			{do: apply(service("NodePort")), want: "200 rv=same np.mysql-rw=np1"},
			{do: apply(service("LoadBalancer")), want: "200 rv=changed np.mysql-rw=np1"},
			{do: apply(service("LoadBalancer")), want: "200 rv=same np.mysql-rw=np1"},
		}},
		{"ClusterIP to NodePort", []step{
			{do: apply(service("ClusterIP")), want: "201 ip=ip1"},
			{do: apply(service("NodePort")), want: "200 type=NodePort ip=ip1 np.mysql-rw=np1 np.mysql-ro=np2 external=Cluster"},
		}},
		{"NodePort to LoadBalancer", []step{
			{do: apply(service("NodePort")), want: "201 ip=ip1 np.mysql-rw=np1 np.mysql-ro=np2"},
			{do: apply(service("LoadBalancer")), want: "200 type=LoadBalancer ip=ip1 np.mysql-rw=np1 np.mysql-ro=np2 allocate=true ingress=0"},
		}},
		{"LoadBalancer with ingress to NodePort", withIngress(
			step{do: apply(service("NodePort")), want: "200 type=NodePort ip=ip1 np.mysql-rw=np1 np.mysql-ro=np2 ingress=0 allocate= class="},
		)},
		{"LoadBalancer with class to NodePort", []step{
			{do: apply(service("LoadBalancer", spec("loadBalancerClass", "a.b/c"))), want: "201 class=a.b/c"},
			{do: apply(service("NodePort")), want: "200 class= allocate="},
		}},
		{"LoadBalancer with ingress to ClusterIP", withIngress(
			step{do: apply(service("ClusterIP")), want: "200 type=ClusterIP ip=ip1 np.mysql-rw= np.mysql-ro= ingress=0 external= allocate="},
		)},
		{"NodePort to ClusterIP", []step{
			{do: apply(service("NodePort")), want: "201 ip=ip1 np.mysql-rw=np1"},
			{do: apply(service("ClusterIP")), want: "200 ip=ip1 np.mysql-rw= np.mysql-ro= external="},
		}},
		{"ClusterIP to LoadBalancer", withIngress(
			step{do: apply(service("ClusterIP")), want: "200 np.mysql-rw="},
			step{do: apply(service("LoadBalancer")), want: "200 ip=ip1 np.mysql-rw=np3 np.mysql-ro=np4 ingress=0"},
		)},
		{"the finalizer of a cloud controller does not hold a change of type", withIngress(
			step{do: patch(mediaMerge, `{"metadata":{"finalizers":["service.kubernetes.io/load-balancer-cleanup"]}}`), want: "200"},
			step{do: apply(service("ClusterIP")), want: "200 type=ClusterIP ingress=0"},
			step{do: remove("db", ""), want: "200 deleting=true"},
			step{do: get("db"), want: "200 deleting=true"},
		)},
		{"NodePort with a fixed number to ClusterIP with the number left in the body", []step{
			{do: apply(service("NodePort", nodePorts(31234, nil))), want: "201 np.mysql-rw=31234"},
			{do: apply(service("ClusterIP", nodePorts(31234, nil))), want: "200 np.mysql-rw="},
		}},
		{"absent to ClusterIP with a nodePort", []step{
			{do: apply(service("ClusterIP", nodePorts(31234, nil))), want: "422 reason=Invalid field=spec.ports[0].nodePort", says: "Forbidden: may not be used when"},
		}},
		{"headless to NodePort", []step{
			{do: apply(service("ClusterIP", spec("clusterIP", "None"))), want: "201 ip=None"},
			{do: apply(service("NodePort", spec("clusterIP", "None"))), want: "422 field=spec.clusterIPs[0]", says: `Invalid value: "None": may not be set to 'None' for NodePort services`},
		}},
		{"another clusterIP", []step{
			{do: apply(service("ClusterIP")), want: "201"},
			{do: apply(service("ClusterIP", spec("clusterIP", "10.152.183.99"))), want: "422", says: "may not change once set"},
			{do: apply(service("ClusterIP", spec("clusterIP", "None"))), want: "422", says: "may not change once set"},
		}},
		{"ExternalName to ClusterIP", []step{
			{do: create(service("ExternalName", spec("externalName", "db.example.com"))), want: "201 type=ExternalName ip="},
			{do: apply(service("ClusterIP")), want: "200 type=ClusterIP ip=ip1"},
		}},
		{"a body without type and selector", []step{
			{do: apply(service("NodePort")), want: "201"},
			{do: apply(service("NodePort", without("type"), without("selector"))), want: "200 type=ClusterIP selector= np.mysql-rw="},
		}},
		{"a body without type and selector that another manager co-owns", []step{
			{do: create(service("NodePort")), want: "201 np.mysql-rw=np1"},
			{do: apply(service("NodePort")), want: "200"},
			{do: apply(service("NodePort", without("type"), without("selector"))), want: "200 type=NodePort selector=app.kubernetes.io/name np.mysql-rw=np1"},
		}},
	})
}

// TestParity_NoOp: the whole answer is the same, times in managedFields included, also seconds later.
func TestParity_NoOp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.must(t, 201, apply(service("NodePort")))
	time.Sleep(1100 * time.Millisecond) // times have a resolution of a second
	require.JSONEq(t, first.text, w.must(t, 200, apply(service("NodePort"))).text)
	require.JSONEq(t, first.text, w.must(t, 200, applyDry(service("NodePort"))).text)
	require.JSONEq(t, first.text, w.must(t, 200, put(first.text)).text)
	require.JSONEq(t, first.text, w.must(t, 200, patchAs(w.manager, mediaMerge, `{}`)).text)
}

// TestParity_NodePorts: kept by port name when the body gives no number.
func TestParity_NodePorts(t *testing.T) {
	t.Parallel()
	nodePort := func(changes ...change) string { return service("NodePort", changes...) }
	other := nodePort(named("other"), nodePorts(31234, 31235))
	tell(t, []story{
		{"automatic to fixed", []step{
			{do: apply(nodePort()), want: "201 np.mysql-rw=np1 np.mysql-ro=np2"},
			{do: apply(nodePort(nodePorts(31234, nil))), want: "200 np.mysql-rw=31234 np.mysql-ro=np2"},
		}},
		{"the key dropped", []step{
			{do: apply(nodePort(nodePorts(31234, nil))), want: "201 np.mysql-rw=31234"},
			{do: apply(nodePort()), want: "200 np.mysql-rw=31234"},
		}},
		{"swapped", []step{
			{do: apply(nodePort(nodePorts(31234, 31235))), want: "201"},
			{do: apply(nodePort(nodePorts(31235, 31234))), want: "200 np.mysql-rw=31235 np.mysql-ro=31234"},
		}},
		{"renamed and dropped in one", []step{
			{do: apply(nodePort(nodePorts(31234, nil))), want: "201 np.mysql-ro=np1"},
			{do: apply(nodePort(port(0, "name", "renamed"))), want: "200 np.renamed=np2 np.mysql-ro=np1"},
		}},
		{"held by another Service", []step{
			{do: create(other), want: "201"},
			{do: apply(nodePort(nodePorts(31234, nil))), want: "422 reason=Invalid cause=FieldValueInvalid field=spec.ports[0].nodePort", says: "Invalid value: 31234: provided port is already allocated"},
			{do: applyDry(nodePort(nodePorts(31234, nil))), want: "422 field=spec.ports[0].nodePort", says: "provided port is already allocated"},
			{do: apply(nodePort()), want: "201"},
			{do: apply(nodePort(nodePorts(nil, 31234))), want: "422 field=spec.ports[1].nodePort", says: "provided port is already allocated"},
		}},
		{"both the same", []step{
			{do: apply(nodePort(nodePorts(31235, 31235))), want: "422 field=spec.ports[1].nodePort cause=FieldValueInvalid", says: "provided port is already allocated"},
		}},
		{"out of range", []step{
			{do: apply(nodePort(nodePorts(8080, nil))), want: "422 field=spec.ports[0].nodePort", says: "provided port is not in the valid range. The range of valid ports is 30000-32767"},
		}},
		{"0 is as absent", []step{
			{do: apply(nodePort(nodePorts(0, nil))), want: "201 np.mysql-rw=np1"},
			{do: apply(nodePort(nodePorts(0, nil))), want: "200 rv=same np.mysql-rw=np1"},
		}},
		{"set by a user", []step{
			{do: apply(nodePort()), want: "201 np.mysql-rw=np1"},
			{do: patch(mediaStrategic, `{"spec":{"ports":[{"port":6446,"nodePort":31235}]}}`), want: "200 np.mysql-rw=31235"},
			{do: apply(nodePort()), want: "200 rv=same np.mysql-rw=31235"},
			{do: applyAs("drawbridge-k8s", false, nodePort()), want: "200 rv=same np.mysql-rw=31235"},
		}},
		{"a third port of a user", []step{
			{do: apply(nodePort()), want: "201"},
			{do: patch(mediaStrategic, `{"spec":{"ports":[{"name":"foreign","port":3306}]}}`), want: "200 ports=foreign:3306,mysql-rw:6446,mysql-ro:6447 np.foreign=np3"},
			{do: applyAs("drawbridge-k8s", false, nodePort()), want: "200 rv=same ports=foreign:3306,mysql-rw:6446,mysql-ro:6447"},
			{do: apply(service("LoadBalancer")), want: "200 ports=foreign:3306,mysql-rw:6446,mysql-ro:6447 np.foreign=np3"},
		}},
		{"our port removed by a user", []step{
			{do: apply(nodePort()), want: "201 np.mysql-rw=np1 np.mysql-ro=np2"},
			{do: patch(mediaJSONPatch, `[{"op":"remove","path":"/spec/ports/1"}]`), want: "200 ports=mysql-rw:6446"},
			{do: applyAs("drawbridge-k8s", false, nodePort()), want: "200 ports=mysql-rw:6446,mysql-ro:6447 np.mysql-rw=np1 np.mysql-ro=np3"},
		}},
		{"an unnamed port of the creator", []step{
			{do: create(nodePort(ports(map[string]any{"port": 3306}))), want: "201"},
			{do: apply(nodePort()), want: "422 field=spec.ports[0].name", says: "Required value"},
			{do: applyDry(nodePort()), want: "422 field=spec.ports[0].name", says: "Required value"},
			{do: patchAs("drawbridge-k8s", mediaJSONPatch, `[{"op":"replace","path":"/spec/ports","value":[{"name":"mysql-rw","port":6446},{"name":"mysql-ro","port":6447}]}]`), want: "200 ports=mysql-rw:6446,mysql-ro:6447"},
			{do: apply(nodePort()), want: "200 ports=mysql-rw:6446,mysql-ro:6447"},
		}},
		{"renumbered where the creator co-owns", []step{
			{do: create(nodePort(ports(map[string]any{"port": 6446}))), want: "201"},
			{do: apply(nodePort()), want: "200 ports=mysql-rw:6446,mysql-ro:6447"},
			{do: apply(nodePort(port(0, "port", 7446))), want: "422", says: ".name: Required value"},
		}},
		{"created by another with the same port numbers", []step{
			{do: create(nodePort(port(0, "name", "x"), port(1, "name", "y"), port(0, "targetPort", 3306), spec("selector", map[string]any{"own": "key"}))), want: "201 np.x=np1 np.y=np2"},
			{do: apply(nodePort()), want: "200 ports=mysql-rw:6446,mysql-ro:6447 np.mysql-rw=np1 target.mysql-rw=6446 selector=app.kubernetes.io/name"},
		}},
	})
}

// TestParity_Policies: traffic policy, source ranges, class, family.
func TestParity_Policies(t *testing.T) {
	t.Parallel()
	lb := func(changes ...change) string { return service("LoadBalancer", changes...) }
	local := spec("externalTrafficPolicy", "Local")
	class := func(v string) change { return spec("loadBalancerClass", v) }
	ranges := func(v ...any) change { return spec("loadBalancerSourceRanges", v) }
	tell(t, []story{
		{"Local on a load balancer", []step{
			{do: apply(lb(local)), want: "201 external=Local health=health1"},
			{do: apply(lb(local, annotations("a/b", "c"))), want: "200 health=health1"},
			{do: apply(lb()), want: "200 external=Cluster health="},
			{do: apply(lb(local)), want: "200 external=Local health=health2"},
			{do: apply(service("NodePort")), want: "200 external=Cluster health="},
		}},
		{"Local on NodePort", []step{
			{do: apply(service("NodePort", local)), want: "201 external=Local health="},
		}},
		{"Local left in the body of ClusterIP", []step{
			{do: apply(lb(local)), want: "201"},
			{do: apply(service("ClusterIP", local)), want: "200 external= health="},
		}},
		{"Local on a new ClusterIP", []step{
			{do: apply(service("ClusterIP", local)), want: "422 field=spec.externalTrafficPolicy"},
		}},
		{"unknown policy and type", []step{
			{do: apply(lb(spec("externalTrafficPolicy", "Bad"))), want: "422 cause=FieldValueNotSupported field=spec.externalTrafficPolicy", says: `supported values: "Cluster", "Local"`},
			{do: apply(service("Foo")), want: "422 cause=FieldValueNotSupported field=spec.type", says: `supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"`},
		}},
		{"bad ranges", []step{
			{do: apply(lb(ranges("10.0.0.1/8"))), want: "422 field=spec.LoadBalancerSourceRanges[0]", says: "must not have bits set beyond the prefix length"},
			{do: apply(lb(ranges("10.1.2.3"))), want: "422", says: "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"},
			{do: apply(lb(ranges("bad"))), want: "422", says: "must be a valid CIDR value"},
		}},
		{"ranges with spaces are stored with them", []step{
			{do: apply(lb(spec("loadBalancerSourceRanges", []any{" 10.0.0.0/8 "}))), want: "201"},
			{do: func(t *testing.T, w *world) reply {
				r := get("db")(t, w)
				if got := texts(dig(r.body, "spec", "loadBalancerSourceRanges")); len(got) != 1 || got[0] != " 10.0.0.0/8 " {
					t.Errorf("ranges are %q", got)
				}
				return r
			}, want: "200"},
		}},
		{"ranges outside a load balancer", []step{
			{do: apply(service("NodePort", ranges("10.0.0.0/8"))), want: "422 field=spec.LoadBalancerSourceRanges", says: "Forbidden: may only be used when `type` is 'LoadBalancer'"},
			{do: apply(lb(ranges("10.0.0.0/8"))), want: "201 ranges=10.0.0.0/8"},
			{do: apply(service("NodePort", ranges("10.0.0.0/8"))), want: "422 field=spec.LoadBalancerSourceRanges"},
			{do: apply(service("NodePort")), want: "200 ranges="},
		}},
		{"ranges of another manager hold the type", []step{
			{do: apply(lb()), want: "201"},
			{do: patch(mediaMerge, `{"spec":{"loadBalancerSourceRanges":["10.0.0.0/8"]}}`), want: "200 ranges=10.0.0.0/8"},
			{do: apply(service("ClusterIP")), want: "422 field=spec.LoadBalancerSourceRanges"},
			{do: patch(mediaMerge, `{"spec":{"loadBalancerSourceRanges":null}}`), want: "200 ranges="},
			{do: apply(service("ClusterIP")), want: "200"},
		}},
		{"class changed", []step{
			{do: apply(lb(class("a.b/one"))), want: "201 class=a.b/one"},
			{do: apply(lb(class("a.b/two"))), want: "422 field=spec.loadBalancerClass", says: "may not change once set"},
			{do: apply(lb()), want: "422 field=spec.loadBalancerClass", says: "may not change once set"},
			{do: apply(service("NodePort")), want: "200 class= np.mysql-rw=np1"},
			{do: apply(lb(class("a.b/two"))), want: "200 class=a.b/two np.mysql-rw=np1 ip=ip1"},
		}},
		{"class added", []step{
			{do: apply(lb()), want: "201"},
			{do: apply(lb(class("a.b/one"))), want: "422 field=spec.loadBalancerClass", says: "may not change once set"},
		}},
		{"class left in the body of NodePort", []step{
			{do: apply(lb(class("a.b/one"))), want: "201"},
			{do: apply(service("NodePort", class("a.b/one"))), want: "200 class="},
		}},
		{"bad class", []step{
			{do: apply(lb(class("bad class"))), want: "422 field=spec.loadBalancerClass", says: "name part must consist of alphanumeric characters"},
		}},
		{"families", []step{
			{do: apply(service("ClusterIP", spec("ipFamilyPolicy", "PreferDualStack"))), want: "201 families=PreferDualStack family=IPv4"},
			{do: apply(service("ClusterIP")), want: "200 families=PreferDualStack"},
			{do: apply(service("ClusterIP", named("two"), spec("ipFamilyPolicy", "RequireDualStack"))), want: "422", says: "this cluster is not configured for dual-stack services"},
		}},
		{"no node ports wanted", []step{
			{do: apply(lb(spec("allocateLoadBalancerNodePorts", false))), want: "201 allocate=false np.mysql-rw= np.mysql-ro="},
		}},
	})
}

// TestParity_Status: the status is written through its own door only.
func TestParity_Status(t *testing.T) {
	t.Parallel()
	tell(t, []story{
		{"a status in the main resource is ignored", withIngress(
			step{do: patch(mediaMerge, `{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}`), want: "200 rv=same lb=10.64.140.43//VIP"},
			step{do: apply(service("LoadBalancer", set("status.loadBalancer.ingress", []any{map[string]any{"ip": "1.2.3.4"}}))), want: "200 rv=same lb=10.64.140.43//VIP"},
		)},
		{"a spec sent to the status is ignored, metadata is stored", withIngress(
			step{do: status(`{"metadata":{"annotations":{"a/b":"c"}},"spec":{"type":"ClusterIP"}}`), want: "200 rv=changed type=LoadBalancer a.a/b=c lb=10.64.140.43//VIP"},
			step{do: get("db"), want: "200 type=LoadBalancer a.a/b=c"},
		)},
		{"ingress on another type", []step{
			{do: apply(service("ClusterIP")), want: "201"},
			{do: ingress(`[{"ip":"1.2.3.4"}]`), want: "422 field=status.loadBalancer.ingress", says: "may only be used when `spec.type` is 'LoadBalancer'"},
		}},
		{"what an ingress may be", withIngress(
			step{do: ingress(`[{"ip":""}]`), want: "200 ingress=1 lb="},
			step{do: ingress(`[{"ip":"1.2.3.4","hostname":"lb.example.com"}]`), want: "200 lb=1.2.3.4/lb.example.com/VIP"},
			step{do: ingress(`[{"ip":"2001:db8::1"}]`), want: "200 lb=2001:db8::1//VIP"},
			step{do: ingress(`[{"ip":"1.2.3.4","ipMode":"Proxy"}]`), want: "200 lb=1.2.3.4//Proxy"},
			step{do: ingress(`[{"hostname":"lb.example.com"}]`), want: "200 lb=lb.example.com"},
			step{do: ingress(`[]`), want: "200 ingress=0"},
		)},
		{"what an ingress may not be", withIngress(
			step{do: ingress(`[{"ip":"1.2.3"}]`), want: "422 field=status.loadBalancer.ingress[0].ip"},
			step{do: ingress(`[{"hostname":"1.2.3.4"}]`), want: "422 field=status.loadBalancer.ingress[0].hostname", says: "must be a DNS name, not an IP address"},
			step{do: ingress(`[{"hostname":"LB.example.com"}]`), want: "422 field=status.loadBalancer.ingress[0].hostname"},
			step{do: ingress(`[{"ip":"1.2.3.4","ipMode":"Bad"}]`), want: "422 cause=FieldValueNotSupported"},
		)},
		{"who writes the status owns it", withIngress(
			step{do: get("db"), want: "200 managers=cloud:Update:status,drawbridge-k8s:Apply"},
		)},
	})
}
