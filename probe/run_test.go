// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// The way of a load balancer: an address after 4 s, an answer after 8 s. The
// charm is woken within 300 ms of each.
func TestWatch_LoadBalancer(t *testing.T) {
	watching(t, "LoadBalancer", nil, func(x *world) {
		time.Sleep(4 * time.Second)
		require.Empty(t, x.noticed())
		x.ingress("10.64.140.43")
		time.Sleep(300 * time.Millisecond)
		require.Len(t, x.noticed(), 1)
		require.InDelta(t, 4000, x.noticed()[0], 250)

		x.answer("10.64.140.43", errRefused)
		require.True(t, x.hook(x.order()).OK)
		time.Sleep(3*time.Second + 130*time.Millisecond) // between two tries, not together with one
		require.Len(t, x.noticed(), 1, "a hook has seen it")

		begin := x.ms()
		x.answer("10.64.140.43", nil)
		time.Sleep(350 * time.Millisecond)
		require.Len(t, x.noticed(), 2)
		require.LessOrEqual(t, x.noticed()[1]-begin, 300+1)

		x.hook(x.order())
		x.tried()
		time.Sleep(2*time.Minute + time.Second)
		require.Len(t, x.noticed(), 2)
		x.tried()
		time.Sleep(time.Minute)
		require.LessOrEqual(t, len(x.tried()), 3*5, "settled: every 15 s, the backend and two ports")
	})
}

func TestWatch_TriesOftenEnough(t *testing.T) {
	watching(t, "LoadBalancer", func(x *world) {
		x.live.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.64.140.43"}}
		x.answers["10.64.140.43:6446"], x.answers["10.64.140.43:6447"] = errRefused, errRefused
	}, func(x *world) {
		time.Sleep(10 * time.Second)
		require.InDelta(t, 3*4*10, len(x.tried()), 6, "four times a second at first")
		time.Sleep(2 * time.Minute)
		x.tried()
		time.Sleep(10 * time.Second)
		require.InDelta(t, 3*10, len(x.tried()), 3, "then once a second, while pending")
		require.Empty(t, x.noticed(), "what a hook knows is no news")
	})
}

// What a hook has just tried is left alone for an interval; what has changed is tried at once.
func TestWatch_TriesAfterAnOrder(t *testing.T) {
	watching(t, "LoadBalancer", func(x *world) {
		x.live.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.0.1"}}
		x.answers["10.0.0.1:6446"], x.answers["10.0.0.1:6447"] = nil, nil
	}, func(x *world) {
		time.Sleep(20 * time.Second) // tried at 15 s, and next at 30 s
		x.tried()
		require.True(t, x.hook(x.order(func(o *Order) { o.WakeAt = time.Now().Add(time.Hour) })).OK)
		time.Sleep(intervalSettled - time.Millisecond)
		require.Empty(t, x.tried())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Len(t, x.tried(), 3)
		time.Sleep(time.Second)
		x.set(func() { x.answers["10.0.0.2:6446"], x.answers["10.0.0.2:6447"] = nil, nil })
		x.ingress("10.0.0.2")
		require.ElementsMatch(t, []string{"backend:3306@36000", "10.0.0.2:6446@36000", "10.0.0.2:6447@36000"}, x.tried())
		time.Sleep(100 * time.Millisecond)
		x.ingress("10.0.0.3")
		require.Contains(t, x.tried(), "10.0.0.3:6446@36100")
	})
}

// A hook is woken at its deadline, again and again while it does not come.
func TestWatch_WakeAt(t *testing.T) {
	watching(t, "ClusterIP", nil, func(x *world) {
		at := time.Now().Add(30 * time.Second)
		x.hook(x.order(func(o *Order) { o.WakeAt = at }))
		time.Sleep(29 * time.Second)
		before := len(x.noticed())
		time.Sleep(1500 * time.Millisecond)
		require.Len(t, x.noticed(), before+1)
		time.Sleep(5 * time.Second)
		require.Len(t, x.noticed(), before+2)
		x.hook(x.order())
		time.Sleep(5 * time.Minute)
		require.Len(t, x.noticed(), before+2)
	})
}

// A hook that is always due at once must not be called as fast as it can run.
func TestWatch_AlwaysDue(t *testing.T) {
	watching(t, "ClusterIP", nil, func(x *world) {
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			x.hook(x.order(func(o *Order) { o.WakeAt = time.Now().Add(time.Millisecond) }))
		}
		require.LessOrEqual(t, len(x.noticed()), 15)
	})
}

func TestWatch_Silence(t *testing.T) {
	watching(t, "ClusterIP", func(x *world) {
		for _, a := range x.order().Seen.Addresses.All() {
			x.answers[a] = nil
		}
	}, func(x *world) {
		address := x.order().Seen.Addresses.ReadWrite[0]
		time.Sleep(20 * time.Second)
		x.tried()
		require.Empty(t, x.noticed())
		x.set(func() { x.answers[address] = errRefused })
		for len(x.noticed()) == 0 && x.ms() < 60000 {
			time.Sleep(50 * time.Millisecond)
		}
		require.LessOrEqual(t, x.noticed()[0], 20000+15000+300)
		x.hook(x.order())
		time.Sleep(time.Minute)
		require.Len(t, x.noticed(), 1, "the hook knows")
		x.set(func() { x.answers[address] = nil })
		time.Sleep(1100 * time.Millisecond)
		require.Len(t, x.noticed(), 2, "back within a second while pending")
	})
}

// One failure is an accident: it is looked at again at once, and not told.
func TestWatch_OneFailureIsNotSilence(t *testing.T) {
	watching(t, "ClusterIP", func(x *world) {
		for _, a := range x.order().Seen.Addresses.All() {
			x.answers[a] = nil
		}
	}, func(x *world) {
		address := x.order().Seen.Addresses.ReadWrite[0]
		for range 20 {
			x.set(func() { x.once[address] = errRefused })
			x.tried()
			time.Sleep(16 * time.Second)
			require.GreaterOrEqual(t, len(x.tried()), 2*3)
		}
		require.Empty(t, x.noticed())
	})
}

func TestWatch_RefusedCredentials(t *testing.T) {
	refused := denied(t)
	watching(t, "ClusterIP", func(x *world) {
		x.answers["backend:3306"] = refused
	}, func(x *world) {
		time.Sleep(time.Second)
		x.tried()
		time.Sleep(time.Minute)
		require.Equal(t, 4, len(x.tried()), "every 15 s, and only the backend")
		x.set(func() { x.answers["backend:3306"] = nil })
		time.Sleep(15 * time.Second)
		require.NotEmpty(t, x.noticed())
	})
}

func TestWatch_Service(t *testing.T) {
	watching(t, "ClusterIP", nil, func(x *world) {
		steps := []func(){
			func() { x.live.Labels = map[string]string{"app.kubernetes.io/name": "x"} },
			func() { x.live.UID = "uid-2" },
			func() { x.live.DeletionTimestamp = &metav1.Time{} },
		}
		for i, step := range steps {
			x.set(step)
			time.Sleep(300 * time.Millisecond)
			require.Len(t, x.noticed(), i+1)
			x.hook(x.order())
		}
		x.set(func() { x.live.Annotations = map[string]string{"foreign": "x"} })
		time.Sleep(time.Minute)
		require.Len(t, x.noticed(), len(steps), "what is not ours is no news")
	})
}

// What the watch sees may be older than what the hook has just applied.
func TestWatch_OrderAheadOfTheWatch(t *testing.T) {
	watching(t, "ClusterIP", nil, func(x *world) {
		ahead := x.order(func(o *Order) { o.Seen.Fields, o.Seen.UID = "newer", "newer" })
		x.set(func() { x.lagging = true })
		x.hook(ahead)
		time.Sleep(200 * time.Millisecond)
		require.Empty(t, x.noticed())
		x.mu.Lock()
		require.Positive(t, x.rereads)
		x.mu.Unlock()
		time.Sleep(time.Second)
		require.NotEmpty(t, x.noticed(), "it does not believe the hook for ever")
	})
}

func TestWatch_NodePort(t *testing.T) {
	node := func(ip string) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}}}
	}
	watching(t, "NodePort", func(x *world) {
		x.nodes = []*corev1.Node{node("10.10.0.10")}
		x.answers["10.10.0.10:30001"], x.answers["10.10.0.10:30002"] = nil, nil
	}, func(x *world) {
		x.set(func() { x.partial, x.nodes = true, nil })
		time.Sleep(time.Minute)
		require.Empty(t, x.noticed(), "nodes that cannot be read have not gone")
		x.set(func() {
			x.partial = false
			x.nodes = []*corev1.Node{node("10.10.0.10"), node("10.10.0.11")}
		})
		time.Sleep(250 * time.Millisecond)
		require.Len(t, x.noticed(), 1)
	})
}

func TestWatch_NotVerifiable(t *testing.T) {
	watching(t, "LoadBalancer", func(x *world) {
		x.live.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.64.140.43"}}
		x.answers["10.152.183.7:6446"], x.answers["10.152.183.7:6447"] = errRefused, errRefused
	}, func(x *world) {
		poke(x.changed)
		x.hook(x.order(func(o *Order) { o.NotVerifiable = true }))
		x.tried()
		time.Sleep(5 * time.Second)
		for _, tried := range x.tried() {
			require.NotContains(t, tried, "10.64.140.43")
		}
		require.Empty(t, x.noticed())
		x.answer("10.152.183.7", nil)
		time.Sleep(400 * time.Millisecond)
		require.NotEmpty(t, x.noticed())
	})
}

func TestWatch_WithoutABackend(t *testing.T) {
	watching(t, "ClusterIP", nil, func(x *world) {
		x.hook(x.order(func(o *Order) { o.Backend, o.Login, o.Seen.Answers, o.Seen.Backend = nil, Login{}, nil, nil }))
		x.tried()
		time.Sleep(5 * time.Minute)
		require.Empty(t, x.tried())
		require.Empty(t, x.noticed())
	})
}

func TestWatch_PebbleIsDown(t *testing.T) {
	watching(t, "LoadBalancer", nil, func(x *world) {
		x.set(func() { x.down = true })
		x.ingress("10.64.140.43")
		time.Sleep(10 * time.Second)
		x.set(func() { x.down = false })
		time.Sleep(10 * time.Second)
		require.NotEmpty(t, x.noticed())
	})
}

// A black hole holds nobody up: another address that answers is told at once.
func TestWatch_BlackHole(t *testing.T) {
	watching(t, "LoadBalancer", func(x *world) {
		x.live.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.0.1"}, {IP: "10.0.0.2"}}
	}, func(x *world) {
		time.Sleep(3500 * time.Millisecond)
		begin := x.ms()
		x.set(func() { x.answers["10.0.0.2:6446"] = nil })
		for range 100 {
			time.Sleep(50 * time.Millisecond)
			if n := x.noticed(); len(n) > 0 {
				require.LessOrEqual(t, n[0]-begin, 3400, "its own last try may still hang")
				return
			}
		}
		t.Fatal("not told")
	})
}

// A hook that asks what hangs is answered over the socket, and the watch goes on.
func TestWatch_SaysWhatHangs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.Empty(t, Hanging(t.Context(), dir), "no watch runs")
	order := Order{Build: "b", App: "db", Service: "db-service"}
	text, err := json.Marshal(order)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- RunWatch(ctx, bytes.NewReader(text), WatchDeps{
			Dir: dir, Build: "b", Hanging: func() []string { return []string{"backend:3306"} },
			Cluster: func(string) (*k8sservice.Client, error) { return nil, errRefused },
		})
	}()
	require.Eventually(t, func() bool { return len(Hanging(t.Context(), dir)) > 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, []string{"backend:3306"}, Hanging(t.Context(), dir))
	r, err := talk(t.Context(), dir, message{Order: &order})
	require.NoError(t, err)
	require.True(t, r.OK)
	cancel()
	require.NoError(t, <-ended)
}

func TestWatch_OrderOfAnotherBuildEndsIt(t *testing.T) {
	watching(t, "ClusterIP", nil, func(x *world) {
		require.Equal(t, reply{Going: true}, x.hook(x.order(func(o *Order) { o.Build = "c" })))
	})
}

func TestWatch_EndsWhenItKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newWorld(t, "ClusterIP")
		lost := time.Now().Add(20 * time.Second)
		x.w.valid = func() bool { return time.Now().Before(lost) }
		require.ErrorContains(t, x.w.run(t.Context(), x.order()), "the lock is somebody else's")
		require.Less(t, x.ms(), 36000)
		time.Sleep(2 * Budget)
	})
}

// denied is how a server's refusal of credentials arrives: as the greeting.
func denied(t *testing.T) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		text := "\xff\x15\x04#28000Access denied" // error 1045
		_, _ = conn.Write(append([]byte{byte(len(text)), 0, 0, 0}, text...))
	}()
	err = database.Credentials{Username: "u", Password: "p"}.Session(t.Context(), l.Addr().String())
	require.Equal(t, database.CodeAccessDenied, database.Code(err))
	return err
}
