//! The store's log, damaged: reading it fails, or yields an earlier state.

use std::{collections::BTreeMap, fs, path::Path, sync::LazyLock};

use kubewake_apiserver::{
    api::{GroupResource, ObjectKey},
    store::{ListQuery, ObjectStore, Options},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::memory::bounded;

const LOG: &str = "store.log";
const HEADER_BYTES: usize = 12;

type State = BTreeMap<String, Value>;

/// A log, and the store's state at each revision.
struct Written {
    log: Vec<u8>,
    states: BTreeMap<u64, State>,
}

/// A directory in memory where possible: each input starts a store.
fn folder() -> TempDir {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { TempDir::new_in(shared) } else { TempDir::new() }.expect("a folder can be made")
}

fn open(folder: &Path) -> Result<ObjectStore, String> {
    let options = Options { data_dir: Some(folder.to_owned()), sync: false, ..Options::default() };
    ObjectStore::open(options).map_err(|error| error.to_string())
}

fn state(store: &ObjectStore) -> State {
    let mut all = State::new();
    for resource in store.collections() {
        let listed = store.list(&resource, &ListQuery::default()).expect("a collection can be listed");
        all.extend(listed.items.iter().map(|object| (object.key.name.clone().to_string(), object.value())));
    }
    all
}

static WRITTEN: LazyLock<Written> = LazyLock::new(|| {
    let folder = folder();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be made");
    let store = open(folder.path()).expect("an empty folder is a store");
    let mut states = BTreeMap::from([(store.revision(), state(&store))]);
    let key = |name: &str| ObjectKey::new(GroupResource::new("", "configmaps"), "default", name);
    runtime.block_on(async {
        for number in 0..12_u64 {
            let name = format!("object-{}", number % 5);
            let object =
                json!({"metadata": {"name": name, "namespace": "default"}, "data": {"number": number.to_string()}});
            let live = store.get(&key(&name)).map(|live| live.revision);
            match (number % 4, live) {
                (3, Some(revision)) => {
                    _ = store.delete(&key(&name), revision, None).await.expect("an object is deleted")
                }
                (_, Some(revision)) => {
                    _ = store.update(&key(&name), revision, object).await.expect("an object is updated")
                }
                (_, None) => _ = store.create(key(&name), object).await.expect("an object is created"),
            }
            states.insert(store.revision(), state(&store));
        }
    });
    store.close();
    drop(store);
    Written { log: fs::read(folder.path().join(LOG)).expect("a store has a log"), states }
});

/// Cuts a log, appends to it, and overwrites bytes: the result is an error or one of the earlier states.
pub(super) fn damaged_log(data: &[u8]) {
    let written = &*WRITTEN;
    let mut log = written.log.clone();
    for edit in data.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([edit[1], edit[2]])) % (log.len() + 1);
        match edit[0] % 4 {
            0 => log.truncate(at),
            1 => log.extend(std::iter::repeat_n(edit[3], at % 64)),
            2 => log.iter_mut().skip(at).take(1).for_each(|byte| *byte = edit[3]),
            _ => log.iter_mut().skip(at).take(usize::from(edit[3])).for_each(|byte| *byte = 0),
        }
    }
    let folder = folder();
    fs::write(folder.path().join(LOG), &log).expect("a log can be written");
    let Ok(store) = open(folder.path()) else { return };
    let revision = store.revision();
    let expected = written.states.get(&revision);
    assert_eq!(Some(&state(&store)), expected, "revision {revision} is not as it was");
}

/// Any bytes behind a header end in an error or a store, within a multiple of their length in memory.
pub(super) fn any_log(data: &[u8]) {
    let folder = folder();
    let log = [&WRITTEN.log[..HEADER_BYTES], data].concat();
    fs::write(folder.path().join(LOG), &log).expect("a log can be written");
    let opened = bounded("a store", data.len(), 256, 4 << 20, || open(folder.path()));
    if let Ok(store) = opened {
        let before = state(&store);
        store.close();
        drop(store);
        let again = open(folder.path()).expect("a store that was opened can be opened again");
        assert_eq!(state(&again), before);
    }
}
