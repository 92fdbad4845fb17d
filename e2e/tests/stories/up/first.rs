//! On a machine where nothing runs.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use kubewake_e2e::{
    documented_output, http,
    otlp::spans,
    up_process::{HomeDir, link_in},
    wait_until,
};

use super::{super::readme, new_head};

/// A browser that notes which page it is asked for.
fn browser(home: &HomeDir) -> PathBuf {
    let folder = home.path().join("bin");
    let note = home.path().join("opened");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("xdg-open"), format!("#!/bin/sh\necho \"$1\" >{}\n", note.display())).unwrap();
    fs::set_permissions(folder.join("xdg-open"), fs::Permissions::from_mode(0o755)).unwrap();
    note
}

#[test]
fn one_command_shows_a_whole_trace_and_leaves_nothing_behind() {
    let home = HomeDir::default();
    let opened = browser(&home);
    let mut up = home.start(&["--open"]);
    let screen = up.screen().to_owned();
    assert!(screen.ends_with(&format!("\nready http://{}\n", up.page())), "{screen}");
    let shown = readme::blocks("docs/tour.md", "text").remove(0);
    let said = format!("{}{screen}", up.process().stderr());
    assert_eq!(
        documented_output::missing_lines(&shown, &said),
        Vec::<&str>::new(),
        "docs/tour.md shows what it does not say:\n{said}"
    );
    let link = link_in(&screen).to_owned();
    assert!(link.starts_with(&format!("http://{}/trace/", up.page())), "{link}");
    up.wait_until_matches(&link, &new_head());
    assert_eq!(http::get(up.page(), "/").status, 200);
    wait_until("the page is opened", || {
        fs::read_to_string(&opened).is_ok_and(|url| url.trim() == format!("http://{}", up.page()))
    });

    // What runs in the cluster is seen by anybody who has the kubeconfig.
    let mode = fs::metadata(up.kubeconfig()).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "only its owner reads the kubeconfig");
    if let Some(pods) = up.kubectl(&["get", "pods", "-A"]) {
        for part in ["kubewake-operator", "kubewake-webhook", "kubewake-gateway", "head-operator", "scheduler-operator"]
        {
            assert!(pods.contains(part), "{pods}");
        }
        // The line that it proposes works as it is.
        let proposed = screen.lines().find(|line| line.contains("kubectl patch")).unwrap().trim();
        let words = proposed.strip_prefix("kubectl ").unwrap().split(" -p ").collect::<Vec<_>>();
        let patch = words[1].trim_matches('\'');
        up.kubectl(&[words[0].split(' ').collect::<Vec<_>>(), vec!["-p", patch]].concat());
        up.kubectl(&["wait", "--for=jsonpath={.status.observedGeneration}=2", "head/sample", "--timeout=60s"]);
    }

    // What containers print is followed like what they do.
    let words = "run talker --image=busybox --restart=Never --command -- sh -c";
    let script = "trap 'exit 0' TERM; while :; do echo '{\"level\":\"warn\",\"msg\":\"an order\"}'; sleep 0.2; done";
    if up.kubectl(&[words.split(' ').collect(), vec![script]].concat()).is_some() {
        let said = up.run_command(&home, &["tail", "--logs", "--pod", "talker", "--severity", "warn", "--limit", "1"]);
        assert!(said.contains("WARN   default/talker talker") && said.ends_with("  an order\n"), "{said}");
    }

    // Any program can send.
    let sent = http::post(up.otlp_http(), "/v1/traces", "application/x-protobuf", &spans(&["first try"]));
    assert_eq!(sent.status, 200);
    wait_until("the viewer has the span of another program", || {
        up.get("/api/v1/services").to_string().contains("first try")
    });

    let kubeconfig = up.kubeconfig().to_owned();
    assert!(home.pods() > 0);
    up.process().signal("INT");
    let status = up.process().wait_for_exit();
    assert!(status.success(), "{status}: {}", up.process().stderr());
    home.wait_until_cleaned_up();
    assert!(fs::metadata(kubeconfig).is_err(), "nobody is misled by a kubeconfig of a cluster that is gone");
}

#[test]
fn a_part_that_dies_is_started_again_and_told_of() {
    let home = HomeDir::default();
    let mut up = home.start(&[]);
    let id = home.processes_with("head-operator").pop().expect("it runs");
    std::process::Command::new("kill").args(["-9", &id]).status().unwrap();
    wait_until("up reports the restart", || {
        up.process().stderr().contains("head-operator exited (signal 9) and was restarted")
    });
    let told = up.run_command(&home, &["demo", "head"]);
    assert!(told.contains("is changed"), "{told}");
    assert!(up.spans(link_in(&told)).with_name("converge Head").count() == 1, "{told}");
    up.stop_with("TERM");
}
