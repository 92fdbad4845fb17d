//! Somebody reads what programs print.

use kubewake_e2e::{wait_for, wait_until};

use super::{cluster, shell};

#[test]
fn output_is_kept_followed_and_cut() {
    let Some(kubectl) = cluster(&[]) else { return };
    let script = "for i in 1 2 3 4 5; do echo line $i; done; while [ ! -e $KUBEWAKE_ROOT/tmp/go ]; do sleep 0.05; done; echo the end";
    let pod = shell("talker", script).replace("command:", "volumeMounts: [{name: tmp, mountPath: /tmp}], command:")
        + "  restartPolicy: Never\n  volumes: [{name: tmp, emptyDir: {}}]\n";
    kubectl.run_ok_with("apply -f -", &pod);
    wait_until("the pod has printed all lines", || kubectl.run("logs talker", "").stdout.contains("line 5"));
    assert_eq!(kubectl.run_ok("logs talker --tail=2"), "line 4\nline 5\n");
    assert_eq!(kubectl.run_ok("logs talker --limit-bytes=6"), "line 1");
    let first = kubectl.run_ok("logs talker --timestamps").lines().next().unwrap().to_owned();
    assert!(first.starts_with("20") && first.ends_with("Z line 1"), "{first}");
    assert!(kubectl.run_ok("logs talker --since=1h").contains("line 1"));

    let mut follower = kubectl.follow("logs -f talker --tail=1");
    wait_until("the follower has printed all lines", || follower.stdout().contains("line 5"));
    let uid = kubectl.field("pod talker", ".metadata.uid");
    let go = wait_for("the volume of the pod", || find(kubectl.cluster().folder(), &uid));
    std::fs::write(go.join("go"), "").unwrap();
    assert!(follower.wait_for_exit().success(), "following ends with the pod");
    assert_eq!(follower.stdout(), "line 5\nthe end\n");
    wait_until("it has ended", || kubectl.field("pod talker", ".status.phase") == "Succeeded");
    assert!(kubectl.run_ok("logs talker").ends_with("the end\n"), "what has ended can be read");
}

/// The directory of the volume `tmp` of this pod.
fn find(folder: &std::path::Path, uid: &str) -> Option<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).find_map(|path| {
        let is_it = path.ends_with("tmp") && path.to_string_lossy().contains(uid);
        if is_it { Some(path) } else { find(&path, uid) }
    })
}

#[test]
fn last_words_are_kept() {
    let Some(kubectl) = cluster(&[]) else { return };
    kubectl.run_ok_with("apply -f -", &shell("crasher", "echo my last words >&2; exit 7"));
    wait_until("the container has restarted", || {
        let count = kubectl.run("get pod crasher -o jsonpath={.status.containerStatuses[0].restartCount}", "").stdout;
        count.parse::<u32>().is_ok_and(|count| count >= 1)
    });
    assert_eq!(kubectl.run_ok("logs crasher --previous"), "my last words\n");
    let status = kubectl.json("pod crasher")["status"]["containerStatuses"][0].clone();
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 7, "{status}");
    wait_until("the container waits in CrashLoopBackOff", || {
        let status = kubectl.json("pod crasher")["status"]["containerStatuses"][0].to_string();
        status.contains("CrashLoopBackOff") && status.contains("my last words")
    });
    assert!(kubectl.run_failing("logs absent").contains("not found"));
    assert!(kubectl.run_failing("logs crasher -c absent").contains("not valid"));
}
