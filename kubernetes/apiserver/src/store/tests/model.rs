//! Compares the store with a simple model: a map for every revision, and a list of events.

use std::{collections::BTreeMap, path::Path};

use proptest::{collection::vec, prelude::*, test_runner::TestCaseResult};

use super::*;

/// The model of one store.
#[derive(Default)]
struct Model {
    /// The state of each collection after each revision.
    states: Vec<[Objects; 2]>,
    events: Vec<Expected>,
    watches: Vec<(StoreWatch, WatchModel)>,
}

type Objects = BTreeMap<String, (u64, Value)>;

#[derive(Clone, Debug, PartialEq)]
struct Expected {
    collection: usize,
    kind: &'static str,
    key: String,
    revision: u64,
    object: Value,
    previous: Option<u64>,
}

/// The expected events of a watch.
struct WatchModel {
    collection: usize,
    initial: Vec<(String, u64)>,
    after: u64,
    lagged: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Create(usize, usize, u8),
    Update {
        collection: usize,
        key: usize,
        value: u8,
        stale: bool,
    },
    Delete {
        collection: usize,
        key: usize,
        stale: bool,
        last: Option<u8>,
    },
    List {
        collection: usize,
        namespace: Option<usize>,
        back: Option<u64>,
        after: Option<usize>,
        limit: Option<usize>,
        odd: bool,
    },
    Pages {
        collection: usize,
        back: u64,
        limit: usize,
    },
    Watch {
        collection: usize,
        back: Option<u64>,
        start: bool,
    },
    Poll {
        watch: usize,
        count: usize,
    },
    Forget,
    Reopen,
}

/// Names that sort differently as pairs than as joined texts.
const NAMESPACES: [&str; 4] = ["a", "a-b", "a.b", "ab"];
const NAMES: [&str; 4] = ["x", "x-y", "x.y", "y"];

/// The first collection is namespaced, the second is not.
fn key_of(collection: usize, number: usize) -> ObjectKey {
    let name = NAMES[number % 4];
    match collection {
        0 => ObjectKey::new(GroupResource::new("", "pods"), NAMESPACES[number / 4], name),
        _ => ObjectKey::new(GroupResource::new("g", "nodes"), "", name),
    }
}

fn text_of(key: &ObjectKey) -> String {
    if key.namespace.is_empty() { key.name.to_string() } else { format!("{}/{}", key.namespace, key.name) }
}

fn steps(reopen: bool) -> impl Strategy<Value = Vec<Step>> {
    let collection = 0..2usize;
    let key = 0..16usize;
    let place = (collection.clone(), key.clone());
    let stale = prop::bool::weighted(0.1);
    let list = (collection.clone(), prop::option::of(0..4usize), prop::option::of(0..12u64));
    let page = (prop::option::of(key), prop::option::of(0..5usize), any::<bool>());
    let step = prop_oneof![
        6 => (place.clone(), any::<u8>()).prop_map(|((collection, key), value)| Step::Create(collection, key, value)),
        8 => (place.clone(), 0..4u8, stale)
            .prop_map(|((collection, key), value, stale)| Step::Update { collection, key, value, stale }),
        3 => (place, stale, prop::option::of(any::<u8>()))
            .prop_map(|((collection, key), stale, last)| Step::Delete { collection, key, stale, last }),
        4 => (list, page).prop_map(|((collection, namespace, back), (after, limit, odd))| {
            Step::List { collection, namespace, back, after, limit, odd }
        }),
        2 => (collection.clone(), 0..6u64, 1..5usize)
            .prop_map(|(collection, back, limit)| Step::Pages { collection, back, limit }),
        2 => (collection, prop::option::of(0..12u64), any::<bool>())
            .prop_map(|(collection, back, start)| Step::Watch { collection, back, start }),
        6 => (0..8usize, 1..8usize).prop_map(|(watch, count)| Step::Poll { watch, count }),
        u32::from(!reopen) => Just(Step::Forget),
        u32::from(reopen) => Just(Step::Reopen),
    ];
    vec(step, 1..120)
}

proptest! {
    #[test]
    fn in_memory(steps in steps(false), history in 0..6000usize) {
        let store = ObjectStore::open(Options { history_bytes: history, ..Options::default() }).unwrap();
        run(steps, history, || store.clone())?;
    }

    #[test]
    fn on_disk(steps in steps(true), history in 0..6000usize, log_slack in 0..3000u64) {
        let dir = tempfile::tempdir().unwrap();
        run(steps, history, || open(dir.path(), history, log_slack))?;
    }
}

fn open(dir: &Path, history_bytes: usize, log_slack: u64) -> ObjectStore {
    let data_dir = Some(dir.to_owned());
    ObjectStore::open(Options { data_dir, history_bytes, log_slack, sync: false }).unwrap()
}

fn run(steps: Vec<Step>, history: usize, open: impl Fn() -> ObjectStore) -> TestCaseResult {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut store = Some(open());
    let mut model = Model { states: vec![Default::default(); 2], ..Model::default() };
    for step in steps {
        if let Step::Reopen = step {
            model.watches.clear();
            drop(store.take());
            store = Some(open());
        }
        let store = store.as_ref().unwrap();
        runtime.block_on(model.step(store, step))?;
        model.check(store, history)?;
    }
    for watch in 0..model.watches.len() {
        model.poll(store.as_ref().unwrap(), watch, usize::MAX)?;
    }
    Ok(())
}

impl Model {
    fn revision(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    fn now(&self) -> &[Objects; 2] {
        self.states.last().unwrap()
    }

    async fn step(&mut self, store: &ObjectStore, step: Step) -> TestCaseResult {
        match step {
            Step::Create(collection, key, value) => {
                let key = key_of(collection, key);
                let written = store.create(key.clone(), object(value)).await;
                if self.now()[collection].contains_key(&text_of(&key)) {
                    prop_assert!(matches!(written, Err(WriteError::Exists)))
                } else {
                    self.wrote(&written.unwrap(), collection, "ADDED", Some(object(value)))?
                }
            }
            Step::Update { collection, key, value, stale } => {
                let key = key_of(collection, key);
                let current = self.now()[collection].get(&text_of(&key)).cloned();
                let expected = current.as_ref().map_or(1, |(revision, _)| revision - u64::from(stale));
                let written = store.update(&key, expected, object(value)).await;
                match current {
                    None => prop_assert!(matches!(written, Err(WriteError::NotFound))),
                    Some(_) if stale => prop_assert!(is_conflict(&written)),
                    Some((revision, old)) if old == object(value) => {
                        prop_assert_eq!(written.unwrap().revision, revision);
                    }
                    Some(_) => self.wrote(&written.unwrap(), collection, "MODIFIED", Some(object(value)))?,
                }
            }
            Step::Delete { collection, key, stale, last } => {
                let key = key_of(collection, key);
                let current = self.now()[collection].get(&text_of(&key)).cloned();
                let expected = current.as_ref().map_or(1, |(revision, _)| revision - u64::from(stale));
                let written = store.delete(&key, expected, last.map(object)).await;
                match current {
                    None => prop_assert!(matches!(written, Err(WriteError::NotFound))),
                    Some(_) if stale => prop_assert!(is_conflict(&written)),
                    Some((_, old)) => {
                        let written = written.unwrap();
                        prop_assert_eq!(without_version(&written), last.map_or(old, object));
                        self.wrote(&written, collection, "DELETED", None)?;
                    }
                }
            }
            Step::List { collection, namespace, back, after, limit, odd } => {
                let namespace = namespace.filter(|_| collection == 0).map(|number| Arc::from(NAMESPACES[number]));
                let at =
                    back.map_or(ListRevision::Newest, |back| ListRevision::Exact(self.revision().saturating_sub(back)));
                let after = after.map(|number| text_of(&key_of(collection, number)));
                self.list(store, collection, &ListQuery { namespace, at, after, limit }, odd)?;
            }
            Step::Pages { collection, back, limit } => self.pages(store, collection, back, limit)?,
            Step::Watch { collection, back, start } => self.watch(store, collection, back, start)?,
            Step::Poll { watch, count } if watch < self.watches.len() => self.poll(store, watch, count)?,
            Step::Forget => store.clear_history(),
            Step::Poll { .. } | Step::Reopen => {}
        }
        Ok(())
    }

    /// Records a successful write: the next state, and the event.
    fn wrote(&mut self, written: &Stored, collection: usize, kind: &'static str, new: Option<Value>) -> TestCaseResult {
        let mut next = self.now().clone();
        let key = text_of(&written.key);
        let revision = self.revision() + 1;
        let previous = match new {
            Some(new) => next[collection].insert(key.clone(), (revision, new)),
            None => next[collection].remove(&key),
        };
        self.states.push(next);
        prop_assert_eq!(written.revision, revision);
        let object = without_version(written);
        let previous = previous.map(|(revision, _)| revision);
        self.events.push(Expected { collection, kind, key, revision, object, previous });
        Ok(())
    }

    fn list(&self, store: &ObjectStore, collection: usize, query: &ListQuery, odd: bool) -> TestCaseResult {
        let resource = key_of(collection, 0).resource;
        let keep = |stored: &Stored| !odd || stored.revision % 2 == 1;
        let revision = if let ListRevision::Exact(revision) = query.at { revision } else { self.revision() };
        let listed = match store.list_filtered(&resource, query, &keep) {
            Ok(listed) => listed,
            Err(error) => {
                let oldest = oldest(store, collection);
                prop_assert_eq!(error, ListError::TooOld { asked: revision, oldest });
                prop_assert!(revision < oldest);
                return Ok(());
            }
        };
        let all = &self.states[revision as usize][collection];
        let inside = |key: &&String| query.namespace.as_ref().is_none_or(|ns| key.starts_with(&format!("{ns}/")));
        let after = |key: &&String| query.after.as_ref().is_none_or(|after| *key > after);
        let keys: Vec<&String> = all.keys().filter(inside).filter(after).collect();
        let limit = query.limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let mut expected = Vec::new();
        let mut looked = 0;
        while looked < keys.len() && expected.len() < limit {
            let (revision, object) = &all[keys[looked]];
            if !odd || revision % 2 == 1 {
                expected.push((keys[looked].clone(), *revision, object.clone()));
            }
            looked += 1;
        }
        let shown = |stored: &Arc<Stored>| (text_of(&stored.key), stored.revision, without_version(stored));
        prop_assert_eq!(listed.items.iter().map(shown).collect::<Vec<_>>(), expected);
        prop_assert_eq!(listed.revision, revision);
        let more = (looked < keys.len()).then(|| (keys[looked - 1].clone(), keys.len() - looked));
        prop_assert_eq!(listed.more.map(|more| (more.after, more.remaining)), more);
        Ok(())
    }

    /// The pages of one revision add up to the list at that revision.
    fn pages(&self, store: &ObjectStore, collection: usize, back: u64, limit: usize) -> TestCaseResult {
        let revision = self.revision().saturating_sub(back);
        if revision < oldest(store, collection) {
            return Ok(());
        }
        let mut query = ListQuery { at: ListRevision::Exact(revision), limit: Some(limit), ..ListQuery::default() };
        let mut keys = Vec::new();
        loop {
            let page = store.list(&key_of(collection, 0).resource, &query).unwrap();
            keys.extend(page.items.iter().map(|stored| text_of(&stored.key)));
            let Some(more) = page.more else { break };
            query.after = Some(more.after);
        }
        prop_assert_eq!(keys, self.states[revision as usize][collection].keys().cloned().collect::<Vec<_>>());
        Ok(())
    }

    fn watch(&mut self, store: &ObjectStore, collection: usize, back: Option<u64>, start: bool) -> TestCaseResult {
        let after = self.revision().saturating_sub(back.unwrap_or(0));
        let from = match back {
            Some(_) => WatchFrom::After(after),
            None if start => WatchFrom::Start,
            None => WatchFrom::Now,
        };
        let oldest = oldest(store, collection);
        let watch = match store.watch(&key_of(collection, 0).resource, from) {
            Ok(watch) => watch,
            Err(error) => {
                prop_assert_eq!(error, WatchError::TooOld { asked: after, oldest });
                prop_assert!(after < oldest);
                return Ok(());
            }
        };
        prop_assert!(back.is_none() || after >= oldest);
        let objects = self.now()[collection].iter().map(|(key, (revision, _))| (key.clone(), *revision));
        let initial = if from == WatchFrom::Start { objects.collect() } else { Vec::new() };
        self.watches.push((watch, WatchModel { collection, initial, after, lagged: false }));
        Ok(())
    }

    fn poll(&mut self, store: &ObjectStore, number: usize, count: usize) -> TestCaseResult {
        let (watch, model) = &mut self.watches[number];
        let oldest = oldest(store, model.collection);
        for _ in 0..count {
            let waiting =
                self.events.iter().find(|event| event.collection == model.collection && event.revision > model.after);
            prop_assert_eq!(watch.remaining_initial(), model.initial.len());
            if model.initial.is_empty() && !model.lagged {
                let seen = watch.seen();
                prop_assert!(waiting.is_none_or(|waiting| waiting.revision > seen));
                prop_assert!(waiting.is_some() || seen == store.revision());
            }
            match watch.try_next() {
                Err(lagged) => {
                    prop_assert!(model.initial.is_empty());
                    prop_assert!(waiting.unwrap().revision <= oldest);
                    prop_assert_eq!(lagged.oldest, oldest);
                    model.lagged = true;
                    break;
                }
                Ok(None) => {
                    prop_assert!(model.initial.is_empty() && waiting.is_none() && !model.lagged);
                    break;
                }
                Ok(Some(event)) if !model.initial.is_empty() => {
                    let (key, revision) = model.initial.remove(0);
                    prop_assert_eq!((text_of(&event.object.key), event.revision), (key, revision));
                    prop_assert_eq!(event.kind, EventKind::Added);
                }
                Ok(Some(event)) => {
                    let shown = Expected {
                        collection: model.collection,
                        kind: event.kind.as_str(),
                        key: text_of(&event.object.key),
                        revision: event.revision,
                        object: without_version(&event.object),
                        previous: event.previous.as_ref().map(|previous| previous.revision),
                    };
                    prop_assert_eq!(event.object.revision, event.revision);
                    prop_assert_eq!(Some(&shown), waiting);
                    model.after = event.revision;
                }
            }
        }
        Ok(())
    }

    /// Invariants after every step.
    fn check(&self, store: &ObjectStore, limit: usize) -> TestCaseResult {
        let state = store.shared().state();
        prop_assert_eq!(state.revision, self.revision());
        prop_assert_eq!(state.objects, self.now().iter().map(BTreeMap::len).sum::<usize>());
        let live = state.collections().iter().flat_map(|collection| collection.objects.iter());
        prop_assert_eq!(state.bytes, live.map(|object| object.memory_size()).sum::<usize>());
        let events = state.collections().iter().flat_map(|collection| &collection.events);
        let charges: Vec<usize> = events.map(|event| event.history_cost()).collect();
        prop_assert_eq!(state.history_bytes, charges.iter().sum::<usize>());
        prop_assert!(state.history_bytes <= limit || charges.len() == 1);
        for (number, objects) in self.now().iter().enumerate() {
            let resource = key_of(number, 0).resource;
            let Some(collection) = state.collection(&resource) else { continue };
            // No event within the claimed history is missing, and no more was dropped than it claims.
            let oldest = state.oldest_revision(Some(collection));
            let known = self.events.iter().filter(|event| event.collection == number && event.revision > oldest);
            let known: Vec<u64> = known.map(|event| event.revision).collect();
            prop_assert_eq!(collection.events.iter().map(|event| event.revision).collect::<Vec<_>>(), known);
            let shown = collection.objects.iter().map(|stored| (text_of(&stored.key), stored.revision));
            let expected = objects.iter().map(|(key, (revision, _))| (key.clone(), *revision));
            prop_assert_eq!(shown.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
        Ok(())
    }
}

fn oldest(store: &ObjectStore, collection: usize) -> u64 {
    let state = store.shared().state();
    state.oldest_revision(state.collection(&key_of(collection, 0).resource))
}

/// The object as it was written; its resourceVersion must be the revision.
fn without_version(stored: &Stored) -> Value {
    let mut value = stored.value();
    let version = crate::api::meta::remove_meta(&mut value, "resourceVersion");
    assert_eq!(version, Some(Value::from(stored.revision.to_string())));
    value
}

fn is_conflict(written: &Result<Arc<Stored>, WriteError>) -> bool {
    matches!(written, Err(WriteError::Conflict { .. }))
}
