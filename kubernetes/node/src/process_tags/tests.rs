use std::process::Stdio;

use super::*;

#[test]
fn only_those_who_carry_it_are_killed_whatever_they_did_to_get_away() {
    let cluster = ClusterTag::new().unwrap();
    let mark = cluster.new_container_tag();
    let other = cluster.new_container_tag();
    let start = |mark: &ContainerTag| {
        let script =
            "setsid sleep 1000 & (cd /; setsid env -i sh -c 'exec 0</dev/null 2>/dev/null; sleep 1000' &); wait";
        mark.tagged_command(Path::new("/bin/sh")).args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut marked = start(&mark);
    let mut bystander = start(&other);
    kill_tagged(&[mark]);
    // Returns only when all holders of the pipe have ended.
    std::io::read_to_string(marked.stdout.take().unwrap()).unwrap();
    marked.wait().unwrap();
    assert!(bystander.try_wait().unwrap().is_none());
    kill_tagged(&[other]);
    bystander.wait().unwrap();
}
