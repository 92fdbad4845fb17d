//! The control plane: reconciles pipeline resources into a running collector layer, which exists only while
//! there are pipelines.
//!
//! ```text
//! reconcile   resolve references → validate → take a slot → cache it → await the layer → status
//! layer       all pipelines of the cache → render and check → build → apply
//! ```
//!
//! - [`operator`]: the process as a whole; [`leader`]: the election; [`context`]: the state that everything
//!   shares; [`health`] and [`metrics`]: the operator's own; [`failure_cause`] and [`error_message`]: errors as
//!   labels and text;
//! - [`mod@reconcile`]: one pipeline; [`source_watcher`]: the Secrets and ConfigMaps that it references;
//!   [`lock`]: slots; [`pipeline_cache`]: validated pipelines; [`last_valid`]: their last valid specs;
//!   [`status`] and [`status_event`]: conditions and events; [`pending_statuses`]: status writes that the cache
//!   has not seen;
//! - [`admission`]: the validating webhook;
//! - [`layer`]: the documents and objects of all pipelines together; [`build`]: objects, pure; [`apply`]:
//!   writes them; [`object_cache`]: the objects that exist; [`pod_monitors`]: those of a kind that may be
//!   missing; [`object_lookup`]: finds them; [`orphans`]: objects of pipelines that are gone;
//! - [`delivery`]: polls the collectors' `/status`; [`delivery_health`]: the results; [`collector_readiness`]:
//!   readiness of the workloads; [`shutdown_losses`]: data that collectors dropped when they ended;
//! - [`telemetry`]: the status of the Telemetry resource; [`relays`]: senders that it trusts;
//!   [`resync_trigger`]: requests a reconcile of all; [`kind`] and [`names`].
//!
//! # Guarantees
//!
//! - Without pipelines there is no workload. The garbage collector removes everything with the last pipeline,
//!   whether an operator runs or not. Objects that it leaves after a deletion with `--cascade=orphan` are
//!   removed at once, or when an operator starts.
//! - At every moment at most as many pipelines of a kind are in the documents as there are slots, whatever dies
//!   when.
//! - An invalid pipeline changes nothing for the others, and its own last valid spec stays in force.
//! - Objects and statuses that are up to date are not written again.
//! - Values of Secrets are only in Secrets: the one that collectors read, and those with last valid specs.

pub mod admission;
pub mod apply;
pub mod build;
pub mod collector_readiness;
pub mod context;
pub mod delivery;
pub mod delivery_health;
pub mod error_message;
pub mod failure_cause;
pub mod health;
pub mod kind;
pub mod last_valid;
pub mod layer;
pub mod leader;
pub mod lock;
pub mod metrics;
pub mod names;
pub mod object_cache;
pub mod object_lookup;
pub mod operator;
pub mod orphans;
pub mod pending_statuses;
pub mod pipeline_cache;
pub mod pod_monitors;
pub mod reconcile;
pub mod relays;
pub mod resync_trigger;
pub mod shutdown_losses;
pub mod source_watcher;
pub mod status;
pub mod status_event;
pub mod telemetry;
