//! The embedded cluster: controllers, scheduler, kubelet and proxy around an API server, on one machine.
//!
//! ```text
//!   controllers ─┐                        ┌─ kubelet ── processes, files, probes, logs
//!   scheduler  ──┼── API server ── informers
//!   autoscaler ──┘                        └─ proxy ──── addresses of Services
//! ```
//!
//! All components talk to the API server as on a real cluster, with kube-rs over TLS, and see it through shared
//! [informers]. Pods are local processes: an [image](images) is the name of a program. Every pod has an
//! [address](addresses) of its own in 127.0.0.0/8, and so has every Service.
//!
//! *Guaranteed*: no workload can take the cluster down. When the cluster stops, in whatever way, no process,
//! directory or file of it is left. *Assumed*: Linux. *Not done*: container images, isolation between
//! processes, DNS, UDP, storage classes, Jobs. The cluster exists for Kubewake; it is not a general Kubernetes.

pub mod addresses;
pub mod cleanup_guard;
mod client;
pub mod cluster;
pub mod controller;
pub mod error;
pub mod events;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod images;
pub mod informer;
pub mod informers;
pub mod key;
pub mod kubelet;
pub mod process_tags;
pub mod proxy;
pub mod queue;
pub mod scheduler;
#[cfg(test)]
mod testing;
pub mod usage;
