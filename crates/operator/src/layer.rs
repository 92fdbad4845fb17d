//! Makes the collector layer what the pipelines ask for.
//!
//! A run takes all that is on the desk, so that one run serves however many pipelines asked for it. Whoever asks while a run is under way is served by the next, and
//! whoever asks meanwhile by the same. It begins when every pipeline that was there at the start has been looked at: a restart drops nothing from a document.
//!
//! *Guaranteed*: a document holds only pipelines that hold a slot, and is written only if nobody wrote it since the locks were read; an operator that was paused overwrites nothing. It is
//! written only if the collector's own rules accept it; a pipeline whose section they refuse is left out, and all others are not disturbed. Values and rights are there
//! before the document that asks for them; values stay until all collectors go by another, or for [`STAY`]. What a document does not need any more goes when the collectors that receive have been seen to go by it, all of them; it stays where none was seen, for [`STAY`].
//! The address that senders know stays as long as there is a pipeline that holds a slot or is about to take one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Api, Resource as _, ResourceExt as _};
use kubewake_api::{Document, Layer, Signal};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    apply::{self, Applier, Desired},
    build::{self, Surroundings},
    cause::Cause,
    context::World,
    delivery::judge::Tier,
    desk::{Entry, Id},
    find::find,
    kind::Kind,
    leftovers,
    lock::{self, Lock},
    metrics::Step,
    names::{self, Part},
    verdicts::Agreement,
    words::{self, Discretion},
};

mod check;
mod hasten;
mod keepers;

use check::Rendered;

/// Longer than a kubelet takes to bring a new document to its pods: a collector that does not say by which it goes has the newest after that.
pub const STAY: Duration = Duration::from_secs(180);
/// How often a run begins anew because of something that passes, such as somebody else who wrote a document.
const ATTEMPTS: usize = 3;
/// How long that may take to pass.
const PAUSE: Duration = Duration::from_millis(100);

/// What did not work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A lock cannot be read.
    #[error(transparent)]
    Lock(#[from] lock::Error),
    /// A document cannot be read.
    #[error("the documents cannot be read")]
    Read(#[source] Box<kube::Error>),
    /// It is not known which pipelines there are.
    #[error("the pipelines cannot be listed")]
    List(#[source] Box<kube::Error>),
    /// Something cannot be written.
    #[error(transparent)]
    Apply(#[from] apply::Error),
    /// What owns everything was deleted in between.
    #[error("the ConfigMap {name} does not stay", name = names::LAYER)]
    Adrift,
    /// Everything was refused, and no pipeline is to blame.
    #[error("the document is refused: {0}")]
    Refused(String),
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The pipelines that are part of a document.
    pub rendered: BTreeSet<Id>,
    /// The hashes of the documents that collectors are to read.
    pub documents: BTreeSet<String>,
    /// Those that were left out, and why.
    pub refused: BTreeMap<Id, String>,
    /// Why it is not all as it should be.
    pub failure: Option<Failure>,
}

/// Why a run did not come to its end.
#[derive(Clone, Debug)]
pub struct Failure {
    /// As a status says it.
    pub words: String,
    /// In a word.
    pub cause: Cause,
}

/// Runs, one at a time.
pub struct Runs {
    world: Arc<World>,
    applier: Applier,
    asked: AtomicU64,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    /// Whoever asked up to this one is served.
    covers: u64,
    outcome: Arc<Outcome>,
    /// When a document was written.
    written: Option<Instant>,
    rendered: Option<Rendered>,
}

/// All that a run reads before it writes.
struct Read {
    documents: BTreeMap<&'static str, ConfigMap>,
    locks: Vec<ConfigMap>,
    has_anchor: bool,
}

impl Runs {
    /// None yet.
    pub fn new(world: Arc<World>, applier: Applier) -> Self {
        Self { world, applier, asked: AtomicU64::new(0), last: Mutex::default() }
    }

    /// Waits for a run that begins after this was called, and says what came of it.
    pub async fn settled(&self) -> Arc<Outcome> {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        self.world.complete().await;
        let mut last = self.last.lock().await;
        if last.covers >= ticket {
            return Arc::clone(&last.outcome);
        }
        let covers = self.asked.load(Ordering::SeqCst);
        // In a box, as everybody who waits here would have room for it otherwise.
        let outcome = Box::pin(self.attempts(&mut last)).await;
        self.world.note_failure(outcome.failure.as_ref().map(|failure| failure.words.as_str()));
        last.covers = covers;
        last.outcome = Arc::new(outcome);
        Arc::clone(&last.outcome)
    }

    async fn attempts(&self, last: &mut Last) -> Outcome {
        let mut outcome = Outcome::default();
        for attempt in 1..=ATTEMPTS {
            self.world.metrics.layer_run();
            outcome = Outcome::default();
            let Err(error) = self.run(&mut outcome, last).await else { return outcome };
            let failure = outcome.failure.insert(Failure { words: words(&error), cause: Cause::from(&error) });
            if attempt == ATTEMPTS || !error.is_passing() {
                tracing::warn!(error = failure.words, "the collector layer is not as it should be yet");
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.world.metrics.layer_failed();
        outcome
    }

    async fn run(&self, outcome: &mut Outcome, last: &mut Last) -> Result<(), Error> {
        let read = self.read().await?;
        let entries = self.world.present();
        let holders = holders(&read.locks, &entries);
        let Last { rendered, written, .. } = last;
        let rendered = self.render(&holders, rendered)?;
        outcome.refused = rendered.refused.clone();
        outcome.rendered = rendered.valid.keys().cloned().collect();
        let layer = &rendered.layer;
        outcome.documents = [&layer.gateway, &layer.sticky].into_iter().flatten().map(|it| it.hash.clone()).collect();
        let keepers = keepers::of(&entries, &holders);
        if keepers.is_empty() {
            return self.sweep_all().await;
        }
        if holders.is_empty() {
            // Somebody is about to take a slot over. Until then what runs goes on.
            return Ok(());
        }
        let around = Surroundings {
            anchor: self.anchor(&keepers, &read).await?,
            keepers,
            settings: self.world.settings(),
            image: self.world.options.image.clone(),
        };
        // Collectors make use of their rights as soon as they have read the document that asks for it.
        let (rights, others) = build::objects(&around, layer).into_iter().partition(|it| it.kind.is_right());
        let min_replicas = around.settings.min_replicas;
        let mut wanted = self.apply(rights, min_replicas).await?;
        wanted.extend(self.texts(&around, layer, &read, written).await?);
        wanted.insert((Kind::ConfigMap, names::LAYER.to_owned()));
        wanted.extend(self.apply(others, min_replicas).await?);
        let given_up = written.is_some_and(|written| written.elapsed() >= STAY);
        self.sweep_unneeded(layer, &wanted, given_up).await?;
        hasten::pods(&self.world, layer).await;
        Ok(())
    }

    /// The documents, which are rendered anew only if something else is asked for.
    fn render<'a>(
        &self,
        holders: &BTreeMap<Id, Arc<Entry>>,
        last: &'a mut Option<Rendered>,
    ) -> Result<&'a Rendered, Error> {
        let valid = |entry: &Entry| entry.valid.clone().filter(|valid| valid.is_rendered());
        let asked = holders.iter().filter_map(|(id, entry)| Some((id.clone(), valid(entry)?))).collect();
        let settings = self.world.settings();
        let new = match last.take() {
            Some(last) if last.is_of(&asked, &settings) => last,
            before => Rendered::new(asked, settings, before.as_ref())?,
        };
        Ok(last.insert(new))
    }

    /// Documents before locks, so that a document is written only if no lock changed hands in between and somebody acted on it.
    async fn read(&self) -> Result<Read, Error> {
        let api = Api::<ConfigMap>::namespaced(self.world.client.clone(), &self.world.options.namespace);
        let mut documents = BTreeMap::new();
        for name in [names::GATEWAY, names::STICKY] {
            let document = find(&api, name).await.map_err(|error| Error::Read(Box::new(error)))?;
            documents.extend(document.map(|document| (name, document)));
        }
        let mut locks = Vec::new();
        for signal in [Signal::Traces, Signal::Logs, Signal::Metrics] {
            locks.extend(Lock::new(api.clone(), signal).read().await?);
        }
        let anchor = find(&api, names::LAYER).await.map_err(|error| Error::Read(Box::new(error)))?;
        Ok(Read { documents, locks, has_anchor: anchor.is_some() })
    }

    /// What owns all that is made for these pipelines.
    async fn anchor(&self, keepers: &[OwnerReference], read: &Read) -> Result<OwnerReference, Error> {
        let World { live, options, .. } = &*self.world;
        if !read.has_anchor {
            // No watch has shown that it went.
            live.forget(Kind::ConfigMap, names::LAYER);
        }
        let anchor = build::anchor(&options.namespace, keepers);
        self.count(Kind::ConfigMap, self.applier.apply(&anchor).await?);
        let live = live.get(Kind::ConfigMap, names::LAYER).ok_or(Error::Adrift)?;
        let live = serde_json::from_value::<ConfigMap>((*live).clone()).map_err(|_| Error::Adrift)?;
        live.owner_ref(&()).ok_or(Error::Adrift)
    }

    /// Makes objects what they should be, and says which these are.
    async fn apply(&self, objects: Vec<Desired>, min_replicas: i32) -> Result<BTreeSet<(Kind, String)>, Error> {
        let mut applied = BTreeSet::new();
        for desired in objects {
            // Not of a kind that the cluster lacks, or that has not been listed yet; what there is of it stays.
            if self.world.live.shows(desired.kind) {
                let made = match desired.kind {
                    Kind::Deployment => self.applier.apply_scaled(&desired, min_replicas).await,
                    _ => self.applier.apply(&desired).await,
                };
                self.made(desired.kind, made)?;
            }
            applied.insert((desired.kind, desired.name));
        }
        Ok(applied)
    }

    /// Writes values and the documents that name them, if there are any.
    async fn texts(
        &self,
        around: &Surroundings,
        layer: &Layer,
        read: &Read,
        written: &mut Option<Instant>,
    ) -> Result<BTreeSet<(Kind, String)>, Error> {
        if layer.gateway.is_none() {
            return Ok(BTreeSet::new());
        }
        let stay = written.is_none_or(|written| written.elapsed() < STAY) && !self.is_read_by_all(layer);
        let live = self.world.live.get(Kind::Secret, names::GATEWAY);
        let live: Option<Secret> = live.and_then(|live| serde_json::from_value((*live).clone()).ok());
        let staying = build::staying(live.as_ref(), read.documents.values(), stay);
        let secret = build::secret(around, layer, &staying);
        self.count(Kind::Secret, self.applier.apply(&secret).await?);
        let mut wanted = BTreeSet::from([(Kind::Secret, secret.name)]);
        for document in build::documents(around, layer) {
            let before = read.documents.get(document.name.as_str());
            let changed = self.applier.replace(before, &document).await?;
            self.count(Kind::ConfigMap, changed);
            if changed || written.is_none() {
                *written = Some(Instant::now());
            }
            wanted.insert((Kind::ConfigMap, document.name));
        }
        Ok(wanted)
    }

    /// Whether all collectors go by these documents. Those of a tier without one must be gone, with what makes them.
    fn is_read_by_all(&self, layer: &Layer) -> bool {
        let sticky = match &layer.sticky {
            Some(document) => self.agreement(Tier::Sticky, document) == Agreement::All,
            None => {
                let has_set = self.world.live.get(Kind::StatefulSet, names::STICKY).is_some();
                !has_set && self.world.pods_of(Tier::Sticky).is_empty()
            }
        };
        let gateway = layer.gateway.as_ref().map(|document| self.agreement(Tier::Gateway, document));
        sticky && gateway == Some(Agreement::All)
    }

    /// Whether the collectors of a tier go by a document: all whose pods are there now, also those that have yet to start or are ending.
    fn agreement(&self, tier: Tier, document: &Document) -> Agreement {
        let pods = self.world.pods_of(tier);
        let uids = pods.iter().map(|pod| pod.metadata.uid.as_deref().unwrap_or_default());
        self.world.verdicts.agreement(uids, document)
    }

    /// Removes what the documents do not need any more. Collectors that go by the one before still need what that one is about: rights, and the
    /// collectors behind.
    async fn sweep_unneeded(
        &self,
        layer: &Layer,
        wanted: &BTreeSet<(Kind, String)>,
        given_up: bool,
    ) -> Result<(), Error> {
        let Some(document) = &layer.gateway else {
            return self.sweep_in_order(wanted).await;
        };
        match self.agreement(Tier::Gateway, document) {
            Agreement::All => self.sweep(wanted).await,
            Agreement::Unknown if given_up => self.sweep(wanted).await,
            Agreement::Unknown | Agreement::Behind => Ok(()),
        }
    }

    /// Removes collectors in the order in which data flows: what those that receive still hold goes to those behind, which stay until the last of the former
    /// has ended. That end is an event of its pod, and so a reason for the next run.
    async fn sweep_in_order(&self, wanted: &BTreeSet<(Kind, String)>) -> Result<(), Error> {
        let mut wanted = wanted.clone();
        if !self.world.pods_of(Tier::Gateway).is_empty() {
            let behind = self.world.live.keys(Part::Layer).into_iter().filter(|(_, name)| name == names::STICKY);
            wanted.extend(behind);
        }
        self.sweep(&wanted).await
    }

    /// Removes everything, as no pipeline is left. One that no watch has shown yet takes over what is there.
    async fn sweep_all(&self) -> Result<(), Error> {
        let is_there = !self.world.live.keys(Part::Layer).is_empty();
        let unseen = async || leftovers::has_unseen(&self.world).await.map_err(|error| Error::List(Box::new(error)));
        if !is_there || unseen().await? {
            return Ok(());
        }
        self.sweep(&BTreeSet::new()).await
    }

    /// Removes what nobody asks for any more.
    async fn sweep(&self, wanted: &BTreeSet<(Kind, String)>) -> Result<(), Error> {
        for (kind, name) in self.world.live.keys(Part::Layer) {
            if !wanted.contains(&(kind, name.clone())) {
                self.made(kind, self.applier.delete(kind, &name).await)?;
            }
        }
        Ok(())
    }

    /// Counts what was written. No pipeline fails for a kind that a cluster may lack; it is tried again by the next run.
    fn made(&self, kind: Kind, made: Result<bool, apply::Error>) -> Result<(), Error> {
        match made {
            Err(error) if !Kind::ALWAYS.contains(&kind) => {
                self.world.metrics.failed(Step::Layer, Cause::from(&error));
                tracing::warn!(error = error.words(), "the collectors run without it");
            }
            made => self.count(kind, made?),
        }
        Ok(())
    }

    fn count(&self, kind: Kind, sent: bool) {
        if sent {
            self.world.metrics.wrote(kind);
        }
    }
}

impl Error {
    /// Whether it may be gone at once.
    fn is_passing(&self) -> bool {
        match self {
            Self::Apply(error) => error.is_passing(),
            Self::Adrift => true,
            Self::Lock(_) | Self::Read(_) | Self::List(_) | Self::Refused(_) => false,
        }
    }
}

/// The pipelines that hold a slot, by what the locks say now.
fn holders(locks: &[ConfigMap], entries: &BTreeMap<Id, Arc<Entry>>) -> BTreeMap<Id, Arc<Entry>> {
    let uids: BTreeSet<&str> =
        locks.iter().flat_map(ConfigMap::owner_references).map(|owner| owner.uid.as_str()).collect();
    let holds = |entry: &Entry| uids.contains(entry.owner.uid.as_str());
    entries.iter().filter(|(_, entry)| holds(entry)).map(|(id, entry)| (id.clone(), Arc::clone(entry))).collect()
}

/// What a status may say of it.
fn words(error: &Error) -> String {
    let said = match error {
        Error::Apply(error) => return error.words(),
        Error::Read(error) | Error::List(error) => error,
        Error::Lock(lock::Error::Api { source, .. }) => source,
        Error::Lock(lock::Error::Contended(_)) | Error::Refused(_) | Error::Adrift => return error.to_string(),
    };
    format!("{error}: {}", words::words(said, Discretion::Open))
}
