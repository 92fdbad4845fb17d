//! The control plane: pipelines as resources become a running collector layer, and nothing when there is none.
//!
//! ```text
//! reconcile   fetch what a pipeline names (secrets) → validate → take a slot (lock) → put it on the desk → await the layer → status
//! layer       all that is on the desk → render and check → build → apply
//! ```
//!
//! - [`operator`]: the whole of it; [`leader`]: which of several works; [`health`] and [`metrics`]: what it says of itself, and [`cause`] of what failed;
//! - [`mod@reconcile`]: one pipeline; [`secrets`]: what it names; [`lock`]: slots; [`desk`]: what was found, and [`kept`] what that was before; [`status`]: what is said of it, and by [`news`], with
//!   [`ready`] and [`verdicts`] from the collectors, which [`delivery`] asks;
//! - [`admission`]: what a pipeline's writer is told before it is stored;
//! - [`layer`]: all pipelines together; [`telemetry`]: what is said of how they run; [`build`]: objects, pure; [`apply`]: writes them; [`live`]: what there is, [`monitors`]: of a kind that comes and goes, and [`find`]: what there may be; [`leftovers`]: what is left of pipelines that are gone; [`written`]: statuses under way; [`mod@words`]: what may be said of refusals;
//! - [`context`]: what all of them have at hand; [`bell`]: says that something happened; [`kind`] and [`names`].
//!
//! # Guarantees
//!
//! - Without a pipeline there is no workload. The last one takes everything along, also while no operator runs: the garbage collector does it. What it leaves where somebody deleted a pipeline with
//!   `--cascade=orphan` goes at once, or when an operator starts.
//! - At every moment at most as many pipelines of a kind are in the documents as there are slots, whatever dies when.
//! - A pipeline that is broken changes nothing for the others, and what ran of itself goes on.
//! - What is as it should be is not written again.
//! - Values of Secrets are in the Secret that collectors read, and nowhere else.

pub mod admission;
pub mod apply;
pub mod bell;
pub mod build;
pub mod cause;
mod closed;
pub mod context;
pub mod delivery;
pub mod desk;
pub mod find;
pub mod health;
pub mod kept;
pub mod kind;
pub mod layer;
pub mod leader;
pub mod leftovers;
pub mod live;
pub mod lock;
pub mod losses;
pub mod metrics;
pub mod monitors;
pub mod names;
pub mod news;
pub mod operator;
pub mod ready;
pub mod reconcile;
pub mod relays;
pub mod secrets;
pub mod status;
pub mod telemetry;
pub mod verdicts;
pub mod words;
pub mod written;
