//! The store after a kill, with a full disk, or with a damaged file.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::Ordering,
};

use futures_util::FutureExt as _;

use super::*;

fn log(dir: &Path) -> PathBuf {
    dir.join("store.log")
}

type Objects = Vec<(String, u64, Value)>;

fn shown(store: &ObjectStore) -> Objects {
    let listed = store.list(&resource(), &ListQuery::default()).unwrap();
    listed.items.iter().map(|stored| (stored.key.name.to_string(), stored.revision, stored.value())).collect()
}

/// Creates, updates and deletes objects. Returns the length of the log and the state after each write.
fn history(dir: &Path) -> Vec<(u64, u64, Objects)> {
    let store = on_disk(dir).unwrap();
    let mut after = Vec::new();
    let mut note =
        |store: &ObjectStore| after.push((fs::metadata(log(dir)).unwrap().len(), store.revision(), shown(store)));
    note(&store);
    for (name, value) in [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 0), ("b", 5)] {
        match store.get(&key(name)) {
            None => wait(store.create(key(name), object(value))),
            Some(there) if value == 0 => wait(store.delete(&key(name), there.revision, None)),
            Some(there) => wait(store.update(&key(name), there.revision, object(value))),
        }
        .unwrap();
        note(&store);
    }
    after
}

#[test]
fn cut_anywhere_the_log_gives_what_was_whole() {
    let dir = tempfile::tempdir().unwrap();
    let after = history(dir.path());
    let whole = fs::read(log(dir.path())).unwrap();
    let (snapshot, ..) = after[0];
    for cut in snapshot..=whole.len() as u64 {
        fs::write(log(dir.path()), &whole[..cut as usize]).unwrap();
        // As after a kill before the mark was written.
        fs::remove_file(dir.path().join("store.mark")).unwrap();
        let store = ObjectStore::open(Options { sync: false, ..options(dir.path()) }).unwrap();
        let (len, revision, expected) = after.iter().rfind(|(len, ..)| *len <= cut).unwrap();
        assert_eq!((store.revision(), &shown(&store)), (*revision, expected), "cut at {cut}");
        assert_eq!(fs::metadata(log(dir.path())).unwrap().len(), *len);
        // Writes are accepted again.
        let created = wait(store.create(key("new"), object(9))).unwrap();
        assert_eq!(created.revision, revision + 1);
        drop(store);
        assert!(on_disk(dir.path()).unwrap().get(&key("new")).is_some());
    }
}

/// The directory of the process that is killed.
const VICTIM: &str = "KUBEWAKE_TEST_STORE";

/// Kills a process while it writes from several threads and compacts its log: every answered write is there.
#[test]
fn after_a_kill_everything_that_was_answered_is_there() {
    for answers in [1, 40, 90, 400] {
        let dir = tempfile::tempdir().unwrap();
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "store::tests::kill::writes_until_it_is_killed"])
            .env(VICTIM, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut answered = lines.filter_map(|line| line.strip_prefix("answered ").map(str::to_owned));
        let mut seen: Vec<String> = answered.by_ref().take(answers).collect();
        victim.kill().unwrap();
        victim.wait().unwrap();
        // A line that was printed before the kill was answered before it.
        seen.extend(answered);
        assert!(seen.len() >= answers);
        let store = on_disk(dir.path()).unwrap();
        for line in seen {
            let (name, value) = line.split_once(' ').unwrap();
            let there = store.get(&key(name)).unwrap().value()["value"].as_u64().unwrap();
            assert!(there >= value.parse().unwrap(), "{name} is at {there} after the answer for {value}");
        }
    }
}

#[test]
#[ignore = "another test runs it, and kills it"]
fn writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(VICTIM) else { return };
    let store = &ObjectStore::open(Options { log_slack: 5000, ..options(dir.as_ref()) }).unwrap();
    println!();
    std::thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            scope.spawn(move || {
                let mut current = wait(store.create(key(name), object(0))).unwrap();
                for value in 1.. {
                    current = wait(store.update(&key(name), current.revision, object(value))).unwrap();
                    // One call, so that lines do not interleave.
                    std::io::stdout().write_all(format!("answered {name} {value}\n").as_bytes()).unwrap();
                }
            });
        }
    });
}

#[test]
fn log_that_is_cut_short_does_not_give_revisions_twice() {
    let dir = tempfile::tempdir().unwrap();
    let after = history(dir.path());
    let (_, last, _) = after.last().unwrap();
    // At the end of a frame, and inside one.
    for cut in [after[2].0, after[2].0 + 3] {
        let whole = fs::read(log(dir.path())).unwrap();
        let mark = fs::read(dir.path().join("store.mark")).unwrap();
        fs::write(log(dir.path()), &whole[..cut as usize]).unwrap();
        let store = on_disk(dir.path()).unwrap();
        assert_eq!(shown(&store), after[2].2);
        assert_eq!(store.revision(), *last, "cut at {cut}");
        let created = wait(store.create(key("new"), object(9))).unwrap();
        assert_eq!(created.revision, last + 1);
        drop(store);
        let again = on_disk(dir.path()).unwrap();
        assert_eq!(again.revision(), last + 1);
        drop(again);
        fs::write(log(dir.path()), &whole).unwrap();
        fs::write(dir.path().join("store.mark"), mark).unwrap();
    }
}

#[test]
fn damaged_mark_is_no_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    let after = history(dir.path());
    let (_, last, objects) = after.last().unwrap();
    for damage in [&b""[..], b"kw-mark\x02future format, unknown", b"x", &[0; 28]] {
        fs::write(dir.path().join("store.mark"), damage).unwrap();
        let store = on_disk(dir.path()).unwrap();
        assert_eq!((store.revision(), &shown(&store)), (*last, objects));
    }
}

#[test]
fn garbage_at_the_end_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let after = history(dir.path());
    let whole = fs::read(log(dir.path())).unwrap();
    for garbage in [&[0; 5000][..], b"\xffKW\xfe", b"\xffKW\xfe\0\0\0\x80abcd", &whole[..8]] {
        fs::write(log(dir.path()), [&whole, garbage].concat()).unwrap();
        assert_eq!(shown(&on_disk(dir.path()).unwrap()), after.last().unwrap().2);
        assert_eq!(fs::read(log(dir.path())).unwrap(), whole);
    }
}

#[test]
fn damage_before_the_end_is_an_error_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let after = history(dir.path());
    let whole = fs::read(log(dir.path())).unwrap();
    let starts: Vec<u64> = after.iter().map(|(len, ..)| *len).collect();
    let last = starts[starts.len() - 2];
    for at in 12..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(log(dir.path()), &damaged).unwrap();
        let frame = starts.iter().rfind(|start| **start <= at as u64).copied().unwrap_or(12);
        match on_disk(dir.path()) {
            Err(OpenError::Corrupt { path, offset, .. }) => assert_eq!((path, offset), (log(dir.path()), frame)),
            Ok(_) => assert!(frame >= last, "damage at {at} was not seen"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn other_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (content, expected) in [
        (&b""[..], "is damaged at byte 0: the header is incomplete"),
        (b"something else entirely", "is damaged at byte 0: the file is not a store of Kubewake"),
        (b"kw-store\x02\0\0\0", "has format version 2, this program reads version 1"),
        (b"kw-store\x01\0\0\0", "is damaged at byte 12: the snapshot ends too early"),
    ] {
        fs::write(log(dir.path()), content).unwrap();
        let error = on_disk(dir.path()).unwrap_err().to_string();
        assert_eq!(error, format!("{} {expected}", log(dir.path()).display()));
    }
}

#[test]
fn two_servers_do_not_share_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let store = on_disk(dir.path()).unwrap();
    let watch = store.watch(&resource(), WatchFrom::Now).unwrap();
    assert!(matches!(on_disk(dir.path()), Err(OpenError::Locked { .. })));
    store.close();
    let second = on_disk(dir.path()).unwrap();
    assert!(matches!(wait(store.create(key("a"), object(1))), Err(WriteError::Closed)));
    drop((store, watch));
    assert!(matches!(on_disk(dir.path()), Err(OpenError::Locked { .. })));
    drop(second);
    assert!(on_disk(dir.path()).is_ok());
}

#[test]
fn others_may_not_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("data");
    let _store = on_disk(&dir).unwrap();
    for path in [dir.clone(), log(&dir), dir.join("lock")] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o077, 0);
    }
}

#[test]
fn history_does_not_reach_back_before_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (_, revision, _) = history(dir.path()).pop().unwrap();
    let store = on_disk(dir.path()).unwrap();
    assert!(store.watch(&resource(), WatchFrom::After(revision)).is_ok());
    let old = store.watch(&resource(), WatchFrom::After(revision - 1)).unwrap_err();
    assert_eq!(old, WatchError::TooOld { asked: revision - 1, oldest: revision });
}

#[test]
fn a_full_disk_fails_writes_until_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = WriteAheadLog::open(dir.path(), true).unwrap();
    let full = Arc::clone(&log.fault);
    let store = ObjectStore::from_shared(SharedStore::new(StoreState::new(1, 1 << 20), true))
        .with_flusher(log, 1 << 20)
        .unwrap();
    let mut watch = store.watch(&resource(), WatchFrom::Now).unwrap();
    wait(store.create(key("a"), object(1))).unwrap();
    full.store(true, Ordering::SeqCst);
    let before = store.revision();
    for _ in 0..3 {
        assert!(matches!(wait(store.create(key("b"), object(1))), Err(WriteError::Disk(_))));
        assert!(matches!(wait(store.update(&key("a"), before, object(2))), Err(WriteError::Disk(_))));
    }
    assert_eq!((store.revision(), store.get(&key("b")).is_none()), (before, true));
    full.store(false, Ordering::SeqCst);
    let created = wait(store.create(key("b"), object(1))).unwrap();
    assert!(created.revision > before);
    let events = std::iter::from_fn(|| watch.try_next().unwrap()).map(|event| event.revision);
    assert_eq!(events.collect::<Vec<_>>(), [before, created.revision]);
    let shown_before = shown(&store);
    drop(store);
    assert_eq!(shown(&on_disk(dir.path()).unwrap()), shown_before);
}

#[test]
fn a_write_happens_even_if_nobody_waits_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = on_disk(dir.path()).unwrap();
    let mut watch = store.watch(&resource(), WatchFrom::Now).unwrap();
    let _ = store.create(key("a"), object(1)).now_or_never();
    assert_eq!(wait(watch.next()).unwrap().revision, 2);
    let _ = store.create(key("b"), object(1)).now_or_never();
    drop(store);
    assert_eq!(shown(&on_disk(dir.path()).unwrap()).len(), 2);
}

#[test]
fn the_log_is_compacted_beside_the_writes() {
    let dir = tempfile::tempdir().unwrap();
    let store = ObjectStore::open(Options { log_slack: 10_000, sync: false, ..options(dir.path()) }).unwrap();
    let mut current = wait(store.create(key("a"), object(0))).unwrap();
    let len = || fs::metadata(log(dir.path())).unwrap().len();
    for compaction in 0..3 {
        let mut before = 0;
        while len() >= before {
            before = len();
            assert!(before < 1 << 30, "the log is never compacted");
            let value = format!("{compaction} {before} {}", "x".repeat(1000));
            current = wait(store.update(&key("a"), current.revision, object(value))).unwrap();
        }
    }
    let expected = shown(&store);
    drop(store);
    let store = on_disk(dir.path()).unwrap();
    assert_eq!((shown(&store), store.revision()), (expected, current.revision));
}

#[test]
fn what_an_unfinished_compaction_left_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let after = history(dir.path());
    fs::write(dir.path().join("store.log.new"), b"kw-sto").unwrap();
    assert_eq!(shown(&on_disk(dir.path()).unwrap()), after.last().unwrap().2);
    assert!(!dir.path().join("store.log.new").exists());
}
