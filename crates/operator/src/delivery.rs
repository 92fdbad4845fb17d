//! What the collectors say of the pipelines: every few seconds each of them is asked for its `/status`, and what they say together is the verdict about each pipeline.
//!
//! - [`ask`]: one collector, over HTTP; [`report`]: what it answers, as far as it matters here;
//! - [`sections`]: which documents there are, and what each says of each pipeline;
//! - [`mod@judge`]: a verdict about each pipeline, pure; [`steady`]: what of it is worth saying.
//!
//! *Guaranteed*: an answer costs bounded time and memory, and so many at once; what a verdict says is words of this program, codes, and what a collector has against a document, clipped.
//! A collector that does not answer is as good as not there.
//! *Not done*: nothing is written. Verdicts are told to [`Verdicts`](crate::verdicts::Verdicts), and statuses follow.

use std::{net::IpAddr, time::Duration};

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use tokio::time::{MissedTickBehavior, interval};

use self::{
    judge::{Answer, Tier, judge, read},
    sections::Documents,
    steady::Steady,
};
use crate::{build::CONFIG, context::World, kind::Kind, names};

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
    world.live.synced().await;
    let (mut documents, mut steady) = (Documents::default(), Steady::default());
    let mut rounds = interval(PERIOD);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        let answers = ask_all(world).await;
        // As they are after the answers: a collector may be behind, and never ahead.
        for tier in Tier::ALL {
            documents.want(tier, document(world, tier).as_deref());
        }
        world.verdicts.note_read(Tier::ALL.map(|tier| (tier, read(&answers, tier))).into());
        world.verdicts.set(steady.after(judge(&answers, &documents)));
    }
}

async fn ask_all(world: &World) -> Vec<Answer> {
    let pods = world.pods.state();
    let asked = pods.iter().filter_map(|pod| collector(pod));
    let answers = asked.map(|(tier, name, address)| async move {
        let report = ask::ask(address).await;
        let report = report.inspect_err(|error| {
            tracing::debug!(
                kind = "Pod",
                name,
                error = error as &dyn std::error::Error,
                "a collector does not say how it is"
            );
        });
        Answer { tier, report: report.ok() }
    });
    stream::iter(answers.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).collect().await
}

/// Where a collector can be asked, if it runs and stays.
fn collector(pod: &Pod) -> Option<(Tier, String, IpAddr)> {
    let status = pod.status.as_ref()?;
    let runs = status.phase.as_deref() == Some("Running") && pod.metadata.deletion_timestamp.is_none();
    let tier = Tier::of(pod.labels().get(names::NAME)?)?;
    let address = status.pod_ip.as_ref()?.parse().ok()?;
    runs.then(|| (tier, pod.name_any(), address))
}

/// The document that the collectors of a tier are to read.
fn document(world: &World, tier: Tier) -> Option<String> {
    let map = world.live.get(Kind::ConfigMap, tier.name())?;
    map.get("data")?.get(CONFIG)?.as_str().map(str::to_owned)
}
