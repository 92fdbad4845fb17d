//! The embedded cluster: what stands around the API server in a Kubernetes that fits on a laptop.
//!
//! ```text
//!   controllers ─┐                        ┌─ kubelet ── processes, files, probes, logs
//!   scheduler  ──┼── API server ── views ─┤
//!   autoscaler ──┘                        └─ proxy ──── addresses of Services
//! ```
//!
//! Everybody talks to the API server as they would on a real cluster, by kube-rs over TLS, and sees it through the same
//! [views](view). Pods are local processes: an [image](images) is the name of a program. Every pod has an
//! [address](addresses) of its own in 127.0.0.0/8, every Service another.
//!
//! *Guarantees.* Nothing that a workload does takes the cluster down. No process, directory or file is left when it stops,
//! however it stops. *Assumes* Linux. *Not done*: container images, isolation of processes from one another, DNS, UDP, storage
//! classes, Jobs: it exists for Kubewake, and is not another Kubernetes.

pub mod addresses;
mod client;
pub mod cluster;
pub mod controller;
pub mod error;
pub mod events;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod guard;
pub mod images;
pub mod key;
pub mod kubelet;
pub mod marks;
pub mod proxy;
pub mod queue;
pub mod scheduler;
#[cfg(test)]
mod testing;
pub mod usage;
pub mod view;
pub mod views;
