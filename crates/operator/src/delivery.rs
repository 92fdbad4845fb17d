//! What the collectors say of the pipelines: every few seconds each of them is asked for its `/status`, and what they say together is the verdict about each pipeline.
//!
//! - [`ask`]: one collector, over HTTP; [`report`]: what it answers, as far as it matters here;
//! - [`sections`]: which documents there are, and what each says of each pipeline;
//! - [`mod@judge`]: a verdict about each pipeline, pure; [`steady`]: what of it is worth saying.
//!
//! *Guaranteed*: an answer costs bounded time and memory, and so many at once; what a verdict says is words of this program, codes, and what a collector has against a document, clipped.
//! A collector that does not answer is as good as not there.
//! *Not done*: nothing is written. Verdicts are told to [`Verdicts`](crate::verdicts::Verdicts), and statuses follow.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use tokio::time::{MissedTickBehavior, interval};

use self::{
    judge::{Answer, Tier, judge},
    sections::Documents,
    steady::Steady,
};
use crate::{build::CONFIG, context::World, kind::Kind, names, verdicts::Read};

pub mod ask;
pub mod judge;
pub mod report;
pub mod sections;
pub mod steady;

/// Wrong credentials are to show within 15 s, and are said when they were seen twice.
const PERIOD: Duration = Duration::from_secs(2);
/// How many collectors are asked at once.
const AT_ONCE: usize = 8;

/// Asks for ever.
pub async fn follow(world: &World) {
    // Also for the pods: what a cache shows that was not filled yet is not what there is.
    world.all_seen().await;
    let (mut documents, mut steady) = (Documents::default(), Steady::default());
    let mut rounds = interval(PERIOD);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        let (answers, read) = ask_all(world).await;
        // As they are after the answers: a collector may be behind, and never ahead.
        for tier in Tier::ALL {
            documents.want(tier, document(world, tier).as_deref());
        }
        world.verdicts.note_read(read);
        world.verdicts.set(steady.after(judge(&answers, &documents)));
    }
}

/// What the collectors that stay say, and by which document each of them goes, also those that are ending: these still deliver as their document says.
async fn ask_all(world: &World) -> (Vec<Answer>, BTreeMap<String, Read>) {
    let pods = world.pods.state();
    let asked = pods.iter().filter_map(|pod| Asked::from_pod(pod));
    let answers = asked.map(|asked| async move {
        let report = ask::ask(asked.address).await;
        let report = report.inspect_err(|error| {
            tracing::debug!(
                kind = "Pod",
                name = asked.name,
                error = error as &dyn std::error::Error,
                "a collector does not say how it is"
            );
        });
        (asked, report.ok())
    });
    let answers: Vec<_> = stream::iter(answers.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).collect().await;
    let hash = |report: &report::Report| report.revision.as_ref().map(|revision| revision.hash.clone());
    let read = answers.iter().map(|(asked, report)| (asked.uid.clone(), report.as_ref().and_then(hash))).collect();
    let staying = answers.into_iter().filter(|(asked, _)| !asked.is_ending);
    (staying.map(|(asked, report)| Answer { tier: asked.tier, report }).collect(), read)
}

/// A collector that can be asked.
struct Asked {
    tier: Tier,
    name: String,
    uid: String,
    address: IpAddr,
    is_ending: bool,
}

impl Asked {
    /// Nothing, if it does not run.
    fn from_pod(pod: &Pod) -> Option<Self> {
        let status = pod.status.as_ref().filter(|status| status.phase.as_deref() == Some("Running"))?;
        Some(Self {
            tier: Tier::of(pod.labels().get(names::NAME)?)?,
            name: pod.name_any(),
            uid: pod.uid()?,
            address: status.pod_ip.as_ref()?.parse().ok()?,
            is_ending: pod.metadata.deletion_timestamp.is_some(),
        })
    }
}

/// The document that the collectors of a tier are to read.
fn document(world: &World, tier: Tier) -> Option<String> {
    let map = world.live.get(Kind::ConfigMap, tier.name())?;
    map.get("data")?.get(CONFIG)?.as_str().map(str::to_owned)
}
