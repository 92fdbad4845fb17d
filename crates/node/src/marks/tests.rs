use std::process::Stdio;

use super::*;

#[test]
fn only_those_who_carry_it_are_killed_whatever_they_did_to_get_away() {
    let cluster = ClusterMark::new().unwrap();
    let (mark, other) = (cluster.container(), cluster.container());
    let start = |mark: &Mark| {
        let script =
            "setsid sleep 1000 & (cd /; setsid env -i sh -c 'exec 0</dev/null 2>/dev/null; sleep 1000' &); wait";
        mark.command(Path::new("/bin/sh")).args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap()
    };
    let (mut marked, mut bystander) = (start(&mark), start(&other));
    kill_all(&[mark]);
    // All who had the pipe are gone, or this would wait.
    std::io::read_to_string(marked.stdout.take().unwrap()).unwrap();
    marked.wait().unwrap();
    assert!(bystander.try_wait().unwrap().is_none());
    kill_all(&[other]);
    bystander.wait().unwrap();
}
