//! Positions across restarts.

use std::{fs, time::Duration};

use super::follower::Node;
use crate::{DirectoryStore, FileCompression, LogEvent, LogFiles, LostBytes, OutputId, ProblemKind, StartAt};

const LOG: &str = "pods/ns_pod_uid/c/0.log";
const PATTERN: &str = "pods/*/*/*.log";

fn rotated(number: u32) -> String {
    format!("{LOG}.20231114-{number:06}")
}

#[test]
fn restart_goes_on_where_each_file_was() {
    let node = Node::new();
    for name in ["a", "b"] {
        node.write(&format!("{name}.log"), &format!("{name} 1\n"));
    }
    let mut follower = node.resume(node.settings(&["*.log"]));
    follower.expect(&["a 1", "b 1"]);
    follower.step(Duration::from_millis(5));
    follower.stop();
    node.append("a.log", "a 2\n");
    node.write("c.log", "c 1\n");
    node.remove("b.log");
    node.write("b.log", "b new\n");
    let mut follower = node.resume(node.settings(&["*.log"]));
    follower.expect(&["a 2", "b new", "c 1"]);
}

#[test]
fn start_at_end_counts_for_the_first_start_alone() {
    let node = Node::new();
    node.write("a.log", "old\n");
    let mut settings = node.settings(&["*.log"]);
    settings.start_at = StartAt::End;
    let mut follower = node.resume(settings.clone());
    follower.expect(&[]);
    follower.stop();
    node.append("a.log", "new\n");
    node.write("b.log", "b\n");
    let mut follower = node.resume(settings);
    follower.expect(&["new", "b"]);
}

#[test]
fn file_that_was_renamed_or_compressed_meanwhile_is_the_same() {
    let node = Node::new();
    node.write("a.log", "a 1\n");
    node.write("z.log", "z 1\n");
    let mut settings = node.settings(&["*.log*"]);
    settings.compression = FileCompression::Auto;
    let mut follower = node.resume(settings.clone());
    follower.expect(&["a 1", "z 1"]);
    follower.stop();
    node.append("a.log", "a 2\n");
    node.rename("a.log", "a.log.1");
    node.write("a.log", "two\n");
    node.append("z.log", "z 2\n");
    node.gzip("z.log", "z.log.1.gz");
    let mut follower = node.resume(settings);
    follower.expect(&["a 2", "two", "z 2"]);
    assert!(follower.lost.is_empty(), "{:?}", follower.lost);
}

#[test]
fn container_that_rotated_several_times_meanwhile_is_read_in_order() {
    let node = Node::new();
    node.write(LOG, "a 1\n");
    let mut follower = node.resume(node.settings(&[PATTERN]));
    follower.expect(&["a 1"]);
    follower.stop();
    node.append(LOG, "a 2\n");
    node.rename(LOG, &rotated(1));
    node.write(LOG, "b 1\n");
    node.gzip(&rotated(1), &format!("{}.gz", rotated(1)));
    node.rename(LOG, &rotated(2));
    node.write(LOG, "c 1\n");
    let mut follower = node.resume(node.settings(&[PATTERN]));
    follower.expect_in_order(&["a 2", "b 1", "c 1"]);
    assert!(follower.lost.is_empty(), "{:?}", follower.lost);
    follower.stop();
    let mut follower = node.resume(node.settings(&[PATTERN]));
    follower.expect(&[]);
}

#[test]
fn reused_inode_is_another_file() {
    let node = Node::new();
    node.write("a.log", "one 1\none 2\n");
    let mut follower = node.resume(node.settings(&["*.log"]));
    follower.expect(&["one 1", "one 2"]);
    follower.stop();
    // The same file with other content is what a reused inode looks like.
    node.truncate("a.log", 0);
    node.append("a.log", "two 1\ntwo 2\ntwo 3\n");
    let mut follower = node.resume(node.settings(&["*.log"]));
    follower.expect(&["two 1", "two 2", "two 3"]);
}

#[test]
fn generation_that_was_removed_meanwhile_is_lost_exactly() {
    let node = Node::new();
    node.write(LOG, "a 1\n");
    let mut follower = node.resume(node.settings(&[PATTERN]));
    follower.expect(&["a 1"]);
    follower.set_answering(OutputId(0), false);
    node.append(LOG, "a 2\n");
    node.rename(LOG, &rotated(1));
    node.write(LOG, "b 1\n");
    follower.until("rotation", |follower| {
        follower.files.streams().all(|stream| stream.generations.len() == 2 && stream.generations[0].is_complete)
    });
    follower.stop();
    node.remove(&rotated(1));
    let mut follower = node.resume(node.settings(&[PATTERN]));
    follower.expect(&["b 1"]);
    assert_eq!(follower.lost.iter().map(|lost| lost.bytes).collect::<Vec<_>>(), [LostBytes::Exact(4)]);
}

#[test]
fn bad_positions_are_kept_aside_and_reported() {
    for bad in [&b"garbage"[..], &{
        let mut newer = crate::checkpoint::Checkpoint::default().encode();
        newer[8] = 2;
        newer
    }] {
        let node = Node::new();
        node.write("a.log", "one\n");
        fs::create_dir(node.path("state")).unwrap();
        fs::write(node.path("state/test.positions"), bad).unwrap();
        let mut follower = node.resume(node.settings(&["*.log"]));
        follower.expect(&["one"]);
        assert_eq!(follower.problems.len(), 1);
        assert_eq!(follower.problems[0].kind, ProblemKind::BadCheckpoint);
        assert_eq!(fs::read(node.path("state/test.bad")).unwrap(), bad);
        follower.stop();
        let mut follower = node.resume(node.settings(&["*.log"]));
        follower.expect(&[]);
    }
}

#[test]
fn state_directory_that_cannot_be_written_does_not_stop_reading() {
    let node = Node::new();
    node.write("a.log", "one\n");
    fs::write(node.path("state"), "no directory").unwrap();
    let mut follower = node.resume(node.settings(&["*.log"]));
    follower.expect(&["one"]);
    follower.until("report", |follower| {
        follower.problems.iter().any(|problem| problem.kind == ProblemKind::CheckpointNotSaved)
    });
    fs::remove_file(node.path("state")).unwrap();
    node.append("a.log", "two\n");
    follower.until("saved", |follower| follower.files.statistics().checkpoints_saved > 0);
    follower.expect(&["one", "two"]);
    follower.stop();
    let mut follower = node.resume(node.settings(&["*.log"]));
    follower.expect(&[]);
}

#[test]
fn nothing_is_stored_while_nothing_changes() {
    let node = Node::new();
    node.write("a.log", "one\n");
    let mut follower = node.resume(node.settings(&["*.log"]));
    follower.expect(&["one"]);
    follower.until("saved", |follower| follower.files.statistics().checkpoints_saved > 0);
    for _ in 0..10 {
        follower.step(Duration::from_millis(5));
    }
    let saved = follower.files.statistics().checkpoints_saved;
    for _ in 0..20 {
        follower.step(Duration::from_millis(5));
    }
    assert_eq!(follower.files.statistics().checkpoints_saved, saved);
}

#[test]
fn outputs_have_positions_of_their_own_by_name() {
    let node = Node::new();
    node.write("a.log", "one\n");
    let open = |outputs: &[&str]| {
        let store = Box::new(DirectoryStore::new(node.path("state"), "test"));
        let outputs = outputs.iter().map(|name| (*name).to_owned()).collect();
        LogFiles::open(node.settings(&["*.log"]), outputs, Some(store)).unwrap()
    };
    let mut files = open(&["x", "y"]);
    let opened = files.poll(Duration::ZERO);
    let LogEvent::Opened(stream) = opened[0] else { panic!("{opened:?}") };
    files.handle().commit(OutputId(1), stream, crate::LogPosition::new(0, 4));
    files.shut_down().unwrap();
    let mut files = open(&["y", "new", "x"]);
    files.poll(Duration::ZERO);
    let offsets = [0, 1, 2].map(|output| files.committed(OutputId(output), stream).unwrap().offset);
    assert_eq!(offsets, [4, 0, 0]);
}
