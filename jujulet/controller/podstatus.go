// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// containerState is what the kubelet part knows of one container.
type containerState struct {
	name     string
	running  bool
	started  bool // the startup probe has succeeded since it runs
	ready    bool
	restarts int32
	since    time.Time // running since
	exit     int32     // exit code of the last run, if restarts > 0
}

// podState is what the kubelet part knows of one pod.
type podState struct {
	ip, hostIP string
	since      time.Time // the pod was started
	containers []containerState
}

// ready reports whether all containers are.
func (p podState) ready() bool {
	return len(p.containers) > 0 && !slices.ContainsFunc(p.containers, func(c containerState) bool { return !c.ready })
}

// status turns a pod's state into what the API shows, keeping the transition
// times of conditions of the previous status that did not change.
func (p podState) status(previous corev1.PodStatus, now time.Time) corev1.PodStatus {
	status := corev1.PodStatus{
		Phase:     corev1.PodPending,
		HostIP:    p.hostIP,
		HostIPs:   []corev1.HostIP{{IP: p.hostIP}},
		QOSClass:  corev1.PodQOSBestEffort,
		StartTime: &metav1.Time{Time: p.since},
	}
	if p.ip != "" {
		status.Phase = corev1.PodRunning
		status.PodIP = p.ip
		status.PodIPs = []corev1.PodIP{{IP: p.ip}}
	}
	for _, c := range p.containers {
		status.ContainerStatuses = append(status.ContainerStatuses, c.status())
	}
	ready := p.ready()
	for _, condition := range []struct {
		kind corev1.PodConditionType
		ok   bool
	}{
		{corev1.PodScheduled, true},
		{corev1.PodInitialized, true},
		{corev1.ContainersReady, ready},
		{corev1.PodReady, ready},
	} {
		status.Conditions = append(status.Conditions, transition(previous, condition.kind, condition.ok, now))
	}
	return status
}

// transition makes a condition; its time is now only if it changed.
func transition(previous corev1.PodStatus, kind corev1.PodConditionType, ok bool, now time.Time) corev1.PodCondition {
	condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now)}
	if ok {
		condition.Status = corev1.ConditionTrue
	} else {
		condition.Reason = "ContainersNotReady"
	}
	for _, old := range previous.Conditions {
		if old.Type == kind && old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
	}
	return condition
}

// status is the container's part of the pod's status.
func (c containerState) status() corev1.ContainerStatus {
	started := c.started
	status := corev1.ContainerStatus{
		Name: c.name, Image: placeholderImage, ImageID: placeholderImage,
		Ready: c.ready, Started: &started, RestartCount: c.restarts,
	}
	if c.running {
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.since)}
	} else {
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	if c.restarts > 0 {
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: c.exit, Reason: "Error"}
	}
	return status
}
