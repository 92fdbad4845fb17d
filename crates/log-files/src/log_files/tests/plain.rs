//! Files outside of containers' directories, as the Collector's recorded cases have them.

use std::{
    os::unix::fs::symlink,
    time::{Duration, SystemTime},
};

use super::follower::Node;
use crate::{
    FileCompression, LinkPolicy, LossCause, OnTruncate, OrderingCriteria, ProblemKind, SortKind, SortRule, StartAt,
};

#[test]
fn new_file_in_a_new_directory_is_read_at_once() {
    let node = Node::new();
    let mut settings = node.settings(&["logs/*/a.log"]);
    // Nothing but the watch of directories can find it.
    settings.rescan_interval = Duration::from_secs(3_600);
    let mut follower = node.follow(settings);
    follower.expect(&[]);
    node.write("logs/x/a.log", "a\n");
    follower.expect(&["a"]);
    node.append("logs/x/a.log", "b\n");
    follower.expect(&["a", "b"]);
}

#[test]
fn directory_that_is_renamed_keeps_its_files() {
    let node = Node::new();
    node.write("logs/x/a.log", "one\n");
    let mut follower = node.follow(node.settings(&["logs/*/a.log"]));
    follower.expect(&["one"]);
    node.rename("logs/x", "logs/y");
    node.append("logs/y/a.log", "two\n");
    follower.expect(&["one", "two"]);
}

#[test]
fn growing_file_is_read_in_steps() {
    let node = Node::new();
    node.write("a.log", "hal");
    let mut follower = node.follow(node.settings(&["*.log"]));
    follower.expect(&[]);
    node.append("a.log", "f\n");
    follower.expect(&["half"]);
    node.append("a.log", &format!("{}\nend\n", "x".repeat(100)));
    follower.expect(&["half", &"x".repeat(100), "end"]);
}

#[test]
fn start_at_end_skips_only_what_was_there() {
    let node = Node::new();
    node.write("a.log", "old\n");
    node.write("empty.log", "");
    node.write("x.txt", "moved\n");
    let mut settings = node.settings(&["*.log"]);
    settings.start_at = StartAt::End;
    let mut follower = node.follow(settings);
    follower.expect(&[]);
    node.append("a.log", "new\n");
    node.append("empty.log", "first\n");
    node.rename("x.txt", "moved.log");
    follower.expect(&["new", "first", "moved"]);
}

#[test]
fn renamed_file_is_the_same_log() {
    let node = Node::new();
    node.write("a.log", "one\n");
    let mut follower = node.follow(node.settings(&["a.log*"]));
    follower.expect(&["one"]);
    node.rename("a.log", "a.log.1");
    node.append("a.log.1", "late\n");
    follower.expect(&["one", "late"]);
    node.write("a.log", "two\n");
    follower.expect(&["one", "late", "two"]);
    node.rename("a.log.1", "a.log.2");
    node.rename("a.log", "a.log.1");
    node.write("a.log", "three\n");
    node.append("a.log.1", "late two\n");
    follower.expect(&["one", "late", "two", "three", "late two"]);
    assert_eq!(follower.lines_of(&node.path("a.log.1")), ["late", "late two"]);
    assert!(follower.lost.is_empty());
}

#[test]
fn file_that_leaves_the_pattern_is_read_to_its_end() {
    let node = Node::new();
    let mut follower = node.follow(node.settings(&["*.log"]));
    follower.expect(&[]);
    node.write("a.log", "one\n");
    follower.expect(&["one"]);
    node.append("a.log", "two\n");
    node.rename("a.log", "a.old");
    node.write("a.log", "three\n");
    follower.expect(&["one", "two", "three"]);
    assert!(follower.lost.is_empty());
}

#[test]
fn deleted_file_is_read_to_its_end() {
    let node = Node::new();
    node.write("a.log", "one\n");
    let mut follower = node.follow(node.settings(&["*.log"]));
    follower.expect(&["one"]);
    node.append("a.log", "two\n");
    node.remove("a.log");
    node.write("a.log", "three\n");
    follower.expect(&["one", "two", "three"]);
    assert!(follower.lost.is_empty());
}

#[test]
fn replaced_file_with_the_same_beginning_goes_on() {
    let node = Node::new();
    node.write("a.log", "one\ntwo\n");
    let mut follower = node.follow(node.settings(&["*.log"]));
    follower.expect(&["one", "two"]);
    node.write("tmp", "one\ntwo\nthree\n");
    node.rename("tmp", "a.log");
    follower.expect(&["one", "two", "three"]);
}

#[test]
fn copy_is_not_read_again() {
    let node = Node::new();
    node.write("a.log", "one\ntwo\n");
    let mut follower = node.follow(node.settings(&["*.log"]));
    follower.expect(&["one", "two"]);
    node.copy("a.log", "b.log");
    follower.expect(&["one", "two"]);
    // As soon as it differs it is a log of its own.
    node.append("b.log", "three\n");
    follower.until("three", |follower| follower.all_lines().contains(&"three".to_owned()));
}

#[test]
fn copy_takes_the_place_of_a_removed_original() {
    let node = Node::new();
    node.write("a.log", "one\ntwo\n");
    let mut follower = node.resume(node.settings(&["*.log"]));
    follower.expect(&["one", "two"]);
    node.copy("a.log", "b.log");
    follower.expect(&["one", "two"]);
    node.remove("a.log");
    follower.expect(&["one", "two"]);
    node.append("b.log", "three\n");
    follower.expect(&["one", "two", "three"]);
    follower.stop();
    let mut follower = node.resume(node.settings(&["*.log"]));
    follower.expect(&[]);
}

#[test]
fn file_that_is_created_again_is_a_new_one() {
    let node = Node::new();
    node.write("a.log", "one\n");
    let mut follower = node.follow(node.settings(&["*.log"]));
    follower.expect(&["one"]);
    node.remove("a.log");
    follower.expect(&["one"]);
    node.write("a.log", "one\n");
    follower.expect(&["one", "one"]);
}

#[test]
fn copytruncate_begins_anew_without_duplicates() {
    for policy in [OnTruncate::Ignore, OnTruncate::ReadWholeFile, OnTruncate::ReadNew] {
        for include in ["*.log", "a.log*"] {
            let node = Node::new();
            node.write("a.log", "one 1\none 2\n");
            let mut settings = node.settings(&[include]);
            settings.on_truncate = policy;
            let mut follower = node.follow(settings);
            follower.expect(&["one 1", "one 2"]);
            node.copy("a.log", "a.log.1");
            node.truncate("a.log", 0);
            follower.expect(&["one 1", "one 2"]);
            node.append("a.log", "two 1\ntwo 2\ntwo 3\n");
            follower.expect(&["one 1", "one 2", "two 1", "two 2", "two 3"]);
            assert!(follower.lost.is_empty());
        }
    }
}

#[test]
fn unread_rest_of_a_truncated_file_is_read_from_its_copy() {
    let node = Node::new();
    node.write("a.log", "one 1\n");
    let mut follower = node.follow(node.settings(&["a.log*"]));
    follower.expect(&["one 1"]);
    // All of it happens between two looks.
    node.append("a.log", "one 2\n");
    node.copy("a.log", "a.log.1");
    node.truncate("a.log", 0);
    node.append("a.log", "two 1\n");
    follower.expect(&["one 1", "one 2", "two 1"]);
    // The copy is a log of its own from now on.
    node.append("a.log.1", "later\n");
    follower.expect(&["one 1", "one 2", "two 1", "later"]);
    assert!(follower.lost.is_empty(), "{:?}", follower.lost);
}

#[test]
fn overwritten_file_is_noticed_whatever_its_size() {
    let node = Node::new();
    node.write("a.log", "one 1\none 2\n");
    let mut follower = node.follow(node.settings(&["a.log"]));
    follower.expect(&["one 1", "one 2"]);
    node.truncate("a.log", 0);
    node.append("a.log", "two 1\ntwo 2\ntwo 3\ntwo 4\n");
    follower.expect(&["one 1", "one 2", "two 1", "two 2", "two 3", "two 4"]);
}

#[test]
fn file_that_was_cut_behind_its_fingerprint_follows_the_policy() {
    let head = "head 0123456789\n";
    let expectations = [
        (OnTruncate::ReadWholeFile, vec!["head 0123456789", "one 1", "one 2", "head 0123456789", "new 1"]),
        (OnTruncate::ReadNew, vec!["head 0123456789", "one 1", "one 2", "new 1"]),
        (OnTruncate::Ignore, vec!["head 0123456789", "one 1", "one 2"]),
    ];
    for (policy, expected) in expectations {
        let node = Node::new();
        node.write("a.log", &format!("{head}one 1\none 2\n"));
        let mut settings = node.settings(&["a.log"]);
        settings.on_truncate = policy;
        settings.fingerprint_size = 16;
        let mut follower = node.follow(settings);
        follower.expect(&expected[..3]);
        node.truncate("a.log", 16);
        for _ in 0..5 {
            follower.step(Duration::from_millis(20));
        }
        node.append("a.log", "new 1\n");
        follower.expect(&expected);
    }
}

#[test]
fn unread_bytes_that_were_cut_are_reported() {
    let node = Node::new();
    node.write("a.log", "one 1\n");
    let mut follower = node.follow(node.settings(&["a.log"]));
    follower.expect(&["one 1"]);
    follower.set_answering(crate::OutputId(0), false);
    node.append("a.log", "one 2\none 3\n");
    follower.step(Duration::from_millis(50));
    // Something looks at the size while the output hangs.
    follower.files.care_soon(crate::StreamId(0));
    follower.step(Duration::from_millis(50));
    node.truncate("a.log", 0);
    node.append("a.log", "two 1\n");
    follower.set_answering(crate::OutputId(0), true);
    follower.expect(&["one 1", "two 1"]);
    assert_eq!(follower.lost.len(), 1, "{:?}", follower.lost);
    assert_eq!((follower.lost[0].bytes.known(), follower.lost[0].cause), (12, LossCause::Truncated));
}

#[test]
fn compressed_file_is_read_and_continues_the_plain_one() {
    let node = Node::new();
    node.write("p", "z 1\nz 2\n");
    node.gzip("p", "a.log.1.gz");
    node.write("a.log", "one 1\none 2\n");
    let mut settings = node.settings(&["a.log*"]);
    settings.compression = FileCompression::Auto;
    let mut follower = node.follow(settings);
    follower.expect(&["z 1", "z 2", "one 1", "one 2"]);
    node.rename("a.log", "a.log.2");
    node.append("a.log.2", "one 3\n");
    node.gzip("a.log.2", "a.log.2.gz");
    node.write("a.log", "two 1\n");
    follower.expect(&["z 1", "z 2", "one 1", "one 2", "one 3", "two 1"]);
    assert!(follower.lost.is_empty());
}

#[test]
fn member_that_is_appended_to_a_compressed_file_is_read() {
    let node = Node::new();
    node.write("p", "z 1\nz 2\n");
    node.write("q", "z 3\n");
    node.gzip("p", "a.gz");
    node.gzip("q", "q.gzip");
    let mut settings = node.settings(&["*.gz"]);
    settings.compression = FileCompression::Gzip;
    let mut follower = node.follow(settings);
    follower.expect(&["z 1", "z 2"]);
    let member = std::fs::read(node.path("q.gzip")).unwrap();
    let mut file = std::fs::File::options().append(true).open(node.path("a.gz")).unwrap();
    std::io::Write::write_all(&mut file, &member).unwrap();
    follower.expect(&["z 1", "z 2", "z 3"]);
}

#[test]
fn links_lead_only_where_they_may() {
    let node = Node::new();
    node.write("real/x.txt", "one\n");
    node.write("other/y.txt", "secret\n");
    node.write("links/z.log", "plain\n");
    symlink(node.path("real/x.txt"), node.path("links/a.log")).unwrap();
    symlink(node.path("other/y.txt"), node.path("links/b.log")).unwrap();
    symlink(node.path("none"), node.path("links/c.log")).unwrap();
    let mut settings = node.settings(&["links/*.log"]);
    settings.links = LinkPolicy::Into(vec![node.path("real")]);
    let mut follower = node.follow(settings);
    follower.expect(&["one", "plain"]);
    assert_eq!(follower.problems.len(), 1, "{:?}", follower.problems);
    assert_eq!(follower.problems[0].kind, ProblemKind::RefusedLink);
    // The target is written, and then the link leads to another file.
    node.append("real/x.txt", "two\n");
    follower.expect(&["one", "plain", "two"]);
    node.write("real/next.txt", "three\n");
    node.remove("links/a.log");
    symlink(node.path("real/next.txt"), node.path("links/a.log")).unwrap();
    follower.expect(&["one", "plain", "two", "three"]);
}

#[test]
fn old_file_is_read_from_its_start_once_it_is_written() {
    let node = Node::new();
    node.write("a.log", "old\n");
    let old = SystemTime::now() - Duration::from_secs(7_200);
    std::fs::File::options().append(true).open(node.path("a.log")).unwrap().set_modified(old).unwrap();
    node.write("b.log", "new\n");
    let mut settings = node.settings(&["*.log"]);
    settings.exclude_older_than = Some(Duration::from_secs(3_600));
    let mut follower = node.follow(settings);
    follower.expect(&["new"]);
    node.append("a.log", "newer\n");
    follower.expect(&["new", "old", "newer"]);
}

#[test]
fn order_decides_which_files_are_read() {
    let node = Node::new();
    for number in [2, 10, 9] {
        node.write(&format!("f-{number}.log"), &format!("{number}\n"));
    }
    let mut settings = node.settings(&["*.log"]);
    settings.ordering = Some(OrderingCriteria {
        regex: Some(regex::Regex::new(r"f-(?P<n>\d+)\.log").unwrap()),
        group_by: None,
        top_n: 1,
        sort_by: vec![SortRule { kind: SortKind::Numeric { key: "n".into() }, ascending: false }],
    });
    let mut follower = node.follow(settings);
    follower.expect(&["10"]);
    node.write("f-11.log", "11\n");
    follower.expect(&["10", "11"]);
    node.remove("f-11.log");
    node.remove("f-10.log");
    follower.expect(&["10", "11", "9"]);
}

#[test]
fn file_is_deleted_when_all_outputs_have_committed_it() {
    let node = Node::new();
    node.write("a.log", "one\ntwo\n");
    let mut settings = node.settings(&["*.log"]);
    settings.delete_after_read = true;
    let mut follower = node.follow(settings);
    follower.expect(&["one", "two"]);
    follower.until("deleted", |_| !node.path("a.log").exists());
    node.write("a.log", "one\ntwo\n");
    follower.expect(&["one", "two", "one", "two"]);
    follower.until("deleted again", |_| !node.path("a.log").exists());
}

#[test]
fn file_is_described() {
    let node = Node::new();
    node.write("real/x.txt", "one\n");
    std::fs::create_dir(node.path("links")).unwrap();
    symlink(node.path("real/x.txt"), node.path("links/a.log")).unwrap();
    let mut settings = node.settings(&["links/*.log"]);
    settings.links = LinkPolicy::Follow;
    let mut follower = node.follow(settings);
    follower.expect(&["one"]);
    let stream = follower.files.streams().next().unwrap();
    let description = stream.describe_file(crate::LogPosition::new(0, 0)).unwrap();
    assert_eq!(description.resolved_path, node.path("real/x.txt").canonicalize().unwrap());
    assert_eq!(description.permissions & 0o400, 0o400);
    assert_eq!(stream.path(), node.path("links/a.log"));
}
