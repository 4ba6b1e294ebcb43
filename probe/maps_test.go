// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// mapStage is an API with ConfigMaps, and a watch on it that runs as in production, but for the process.
type mapStage struct {
	*stage
	t      *testing.T
	server *httptest.Server
	dir    string
	build  string

	mu       sync.Mutex
	requests []string
	refuse   func(r *http.Request) bool // answers 403
	notices  int
	other    int // notices about the exposure
	failing  int
	log      bytes.Buffer
}

func newMapStage(t *testing.T) *mapStage {
	m := &mapStage{stage: newStage(), t: t, dir: t.TempDir(), build: "b"}
	m.server = httptest.NewServer(m)
	t.Cleanup(func() { m.server.CloseClientConnections(); m.server.Close() })
	return m
}

func (m *mapStage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.requests = append(m.requests, r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("fieldSelector"))
	refused := m.refuse != nil && m.refuse(r)
	m.mu.Unlock()
	if refused {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
			Code: 403, Reason: metav1.StatusReasonForbidden, Message: `configmaps "x" is forbidden: User "u" cannot watch resource "configmaps" in API group ""`})
		return
	}
	m.stage.ServeHTTP(w, r)
}

// Write keeps the log.
func (m *mapStage) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.Write(p)
}

type notifyFunc func() error

func (f notifyFunc) Notify(context.Context) error { return f() }

// watch runs a watch until the returned function ends it; its error, nil if another one runs already, comes on ended.
func (m *mapStage) watch(order Order) (end func(), ended chan error) {
	ctx, cancel := context.WithCancel(m.t.Context())
	text, err := json.Marshal(order)
	require.NoError(m.t, err)
	count := func(n *int) notifyFunc {
		return func() error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.failing > 0 {
				m.failing--
				return errors.New("connection refused")
			}
			*n++
			return nil
		}
	}
	ended = make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- RunWatch(ctx, bytes.NewReader(text), WatchDeps{
			Dir: m.dir, Build: order.Build, Session: func(Login) Session { return nil },
			Cluster: func(string) (*k8sservice.Client, error) {
				return k8sservice.NewClient(k8sservice.Options{Host: m.server.URL, Namespace: "dev", Transport: http.DefaultTransport, Timeout: time.Second})
			},
			Notifier: count(&m.other), Connections: count(&m.notices),
			Logger: slog.New(slog.NewTextHandler(m, &slog.HandlerOptions{Level: slog.LevelInfo})),
		})
	}()
	once := func() { cancel(); <-done }
	m.t.Cleanup(once)
	return once, ended
}

// data makes a ConfigMap, or changes it.
func (m *mapStage) data(name, value string, change ...func(*corev1.ConfigMap)) {
	object := &corev1.ConfigMap{TypeMeta: typeMeta("ConfigMap"), ObjectMeta: metav1.ObjectMeta{Namespace: "dev"}, Data: map[string]string{"version": value}}
	for _, c := range change {
		c(object)
	}
	m.put("configmaps/"+name, object)
}

func digest(name, value string) string {
	return connections.ConfigMap{Name: name, Data: map[string]string{"version": value}}.Digest()
}

// order lists ConfigMaps with the value that the last hook saw, "" for none.
func (m *mapStage) order(pairs ...string) Order {
	o := Order{Build: m.build, App: "db", Namespace: "dev", Service: "db-service", ConfigMaps: map[string]string{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		o.ConfigMaps[pairs[i]] = ""
		if pairs[i+1] != "" {
			o.ConfigMaps[pairs[i]] = digest(pairs[i], pairs[i+1])
		}
	}
	return o
}

func (m *mapStage) counted() (notices, other int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.notices, m.other
}

// hands gives an order to the watch that runs.
func (m *mapStage) hands(o Order) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		r, err := talk(m.t.Context(), m.dir, message{Order: &o})
		return err == nil && r.OK
	}, 10*time.Second, 5*time.Millisecond)
}

// followed waits until the watch follows so many ConfigMaps.
func (m *mapStage) followed(n int) {
	m.t.Helper()
	require.Eventually(m.t, func() bool { return m.open("configmaps") == n }, 20*time.Second, 5*time.Millisecond)
}

func (m *mapStage) noticed(n int) {
	m.t.Helper()
	require.Eventually(m.t, func() bool { got, _ := m.counted(); return got == n }, 10*time.Second, 5*time.Millisecond)
}

// still requires that there is no further notice for a while.
func (m *mapStage) still(n int) {
	m.t.Helper()
	require.Never(m.t, func() bool { got, _ := m.counted(); return got != n }, 1800*time.Millisecond, 20*time.Millisecond)
}

func TestMaps(t *testing.T) {
	t.Parallel()
	t.Run("conn-T40", func(t *testing.T) {
		t.Parallel()
		m := newMapStage(t)
		m.data("noise-recognition", "9")
		m.watch(m.order("noise-recognition", "9"))
		m.followed(1)
		m.still(0)
		m.data("noise-recognition", "10")
		m.noticed(1)
		m.hands(m.order("noise-recognition", "10"))
		m.still(1)
		_, other := m.counted()
		require.Zero(t, other, "it is no notice about the exposure")
	})
	t.Run("conn-T42", func(t *testing.T) {
		t.Parallel()
		m := newMapStage(t)
		m.data("a", "1")
		end, _ := m.watch(m.order("a", "1"))
		m.followed(1)
		end()
		m.watch(m.order("a", "1"))
		m.followed(1)
		m.data("a", "1", func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"x": "y"} })
		m.put("configmaps/a", nil)
		m.data("a", "1", func(c *corev1.ConfigMap) { c.UID = "other" })
		m.still(0)
		m.put("configmaps/a", nil)
		m.noticed(1)
	})
	t.Run("conn-T43", func(t *testing.T) {
		t.Parallel()
		m := newMapStage(t)
		m.data("a", "1")
		m.watch(m.order("a", "1"))
		m.followed(1)
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, r := range m.requests {
			require.Contains(t, r, "/namespaces/dev/", "no other namespace is ever asked for")
		}
	})
	t.Run("conn-T44", func(t *testing.T) {
		t.Parallel()
		m := newMapStage(t)
		m.data("a", "1")
		m.data("foreign", "1")
		m.watch(m.order("a", "1"))
		m.followed(1)
		m.data("foreign", "2")
		m.still(0)
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, r := range m.requests {
			require.NotContains(t, r, "foreign")
			if strings.Contains(r, "configmaps") {
				require.True(t, strings.Contains(r, "metadata.name=a") || strings.HasSuffix(r, "/configmaps/a "), r)
			}
		}
	})
	t.Run("conn-T45", func(t *testing.T) {
		t.Parallel()
		m := newMapStage(t)
		m.data("a", "1")
		var ended []chan error
		for range 2 {
			_, one := m.watch(m.order("a", "1"))
			ended = append(ended, one)
		}
		select {
		case err := <-ended[0]:
			require.NoError(t, err)
		case err := <-ended[1]:
			require.NoError(t, err)
		case <-time.After(20 * time.Second):
			t.Fatal("two watches run")
		}
		m.followed(1)
		next := m.order("a", "1")
		next.Build = "c"
		r, err := talk(t.Context(), m.dir, message{Order: &next})
		require.NoError(t, err)
		require.True(t, r.Going, "another build takes over")
		m.build = "c"
		require.Eventually(t, func() bool { return m.open("configmaps") == 0 }, 10*time.Second, 5*time.Millisecond)
		m.watch(next)
		m.followed(1)
		m.data("a", "2")
		m.noticed(1)
	})
	t.Run("conn-T48", func(t *testing.T) {
		t.Parallel()
		m := newMapStage(t)
		m.data("a", "1")
		m.data("b", "1")
		m.refuse = func(r *http.Request) bool {
			return r.URL.Query().Get("watch") != "" && strings.Contains(r.URL.Path, "configmaps")
		}
		m.watch(m.order("a", "1", "b", "1"))
		require.Eventually(t, func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return strings.Contains(m.log.String(), "cannot follow connected ConfigMaps")
		}, 10*time.Second, 5*time.Millisecond)
		m.data("a", "2")
		require.Eventually(t, func() bool { got, _ := m.counted(); return got == 1 }, time.Minute, 20*time.Millisecond)
		m.mu.Lock()
		defer m.mu.Unlock()
		require.Equal(t, 1, strings.Count(m.log.String(), "\n"), m.log.String())
		require.LessOrEqual(t, reopenLast, time.Minute)
	})
	t.Run("conn-T49", func(t *testing.T) {
		// Pebble: a domain, and a path of lower-case letters, digits and single dashes.
		valid := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)+(/[a-z0-9]+(-[a-z0-9]+)*)+$`)
		require.Regexp(t, valid, connections.NoticeKey)
		require.Regexp(t, valid, NoticeKey)
		require.NotRegexp(t, valid, connections.Domain+"/connections/kube-root-ca.crt")
	})
	t.Run("what comes and goes", func(t *testing.T) {
		t.Parallel()
		m := newMapStage(t)
		m.watch(m.order("late", ""))
		m.followed(1)
		m.still(0)
		m.data("late", "1")
		m.noticed(1)
		m.data("second", "1")
		m.hands(m.order("late", "1", "second", "1"))
		m.followed(2)
		m.hands(m.order())
		require.Eventually(t, func() bool { return m.open("configmaps") == 0 }, 10*time.Second, 5*time.Millisecond)
		m.data("late", "2")
		m.still(1)
	})
}

// told counts notices in synthetic time.
type toldMaps struct {
	digests map[string]string
	poke    chan struct{}
	times   []time.Duration
	begin   time.Time
	failing int
}

func (m *toldMaps) follow(map[string]string) {}
func (m *toldMaps) look() map[string]string {
	seen := map[string]string{}
	for name, d := range m.digests {
		seen[name] = d
	}
	return seen
}

func (m *toldMaps) Notify(context.Context) error {
	if m.failing > 0 {
		m.failing--
		return errors.New("connection refused")
	}
	m.times = append(m.times, time.Since(m.begin))
	return nil
}

func (m *toldMaps) change(name, digest string) {
	m.digests[name] = digest
	poke(m.poke)
	synctest.Wait()
}

// pacing runs a watch over ConfigMaps made of values, in synthetic time.
func pacing(t *testing.T, test func(x *world, m *toldMaps)) {
	t.Helper()
	m := &toldMaps{digests: map[string]string{"a": "1"}}
	watching(t, "ClusterIP", func(x *world) {
		m.begin, m.poke = time.Now(), make(chan struct{}, 1) // in the bubble
		for _, address := range k8sservice.Addresses(x.live, k8sservice.AddressOptions{}).All() {
			x.answers[address] = nil
		}
		x.w.maps.looker, x.w.maps.changes, x.w.maps.notifier = m, m.poke, m
	}, func(x *world) {
		x.hook(x.order(func(o *Order) { o.ConfigMaps = map[string]string{"a": "1"} }))
		m.change("a", "1")
		m.begin = time.Now()
		test(x, m)
	})
}

func TestMaps_Pace(t *testing.T) {
	t.Parallel()
	t.Run("conn-T41", func(t *testing.T) {
		pacing(t, func(_ *world, m *toldMaps) {
			for i := range 20 {
				m.change("a", fmt.Sprint("v", i))
				time.Sleep(50 * time.Millisecond)
			}
			last := time.Since(m.begin) - 50*time.Millisecond
			time.Sleep(2 * time.Second)
			require.Contains(t, []int{1, 2}, len(m.times))
			require.Greater(t, m.times[len(m.times)-1], last)
		})
	})
	t.Run("conn-T46", func(t *testing.T) {
		pacing(t, func(x *world, m *toldMaps) {
			m.failing = 3
			m.change("a", "2")
			time.Sleep(4 * time.Second)
			require.Empty(t, m.times)
			time.Sleep(4*time.Second + 500*time.Millisecond)
			require.Len(t, m.times, 1)
			x.hook(x.order(func(o *Order) { o.ConfigMaps = map[string]string{"a": "2"} }))
			time.Sleep(time.Minute)
			require.Len(t, m.times, 1)
		})
	})
	t.Run("a change is told within half a second", func(t *testing.T) {
		pacing(t, func(x *world, m *toldMaps) {
			m.change("a", "2")
			time.Sleep(500 * time.Millisecond)
			require.Len(t, m.times, 1)
			require.Empty(t, x.noticed())
		})
	})
	t.Run("one that is gone for a second is not told", func(t *testing.T) {
		pacing(t, func(_ *world, m *toldMaps) {
			m.change("a", "")
			time.Sleep(time.Second)
			m.change("a", "1")
			time.Sleep(10 * time.Second)
			require.Empty(t, m.times)
			m.change("a", "")
			time.Sleep(2 * time.Second)
			require.Len(t, m.times, 1)
		})
	})
	t.Run("ConfigMaps do not make it try addresses more often", func(t *testing.T) {
		pacing(t, func(x *world, m *toldMaps) {
			m.change("a", "2") // and no hook that takes it in
			time.Sleep(3 * time.Minute)
			x.tried()
			time.Sleep(time.Minute)
			require.LessOrEqual(t, len(x.tried()), 3*5)
			require.Greater(t, len(m.times), 3, "it is told again, ever more seldom")
			require.Less(t, len(m.times), 12)
		})
	})
}
