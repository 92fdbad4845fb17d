//! Where ports are busy, and where another one runs.

use std::net::TcpListener;

use kubewake_e2e::{free_address, up_process::HomeDir};

#[test]
fn two_run_side_by_side_though_they_want_the_same_ports() {
    let home = HomeDir::default();
    let wanted = [free_address(), free_address(), free_address(), free_address()];
    // Nobody of ours has this one.
    let busy = TcpListener::bind(wanted[0]).unwrap();
    let [page, otlp, otlp_http, api] = wanted.map(|address| address.to_string());
    let asked = ["--listen", &page, "--otlp", &otlp, "--otlp-http", &otlp_http, "--api", &api, "--no-demo"];
    let mut first = home.start_with(&asked);
    let said = first.process().stderr();
    assert!(said.contains(&format!("{page} is in use: the page uses {}", first.page())), "{said}");
    assert!(!said.contains(&format!("{otlp} is in use")), "{said}");

    let data = home.path().join("data");
    let mut second = home.start_with(&[&asked[..], &["--data-dir", data.to_str().unwrap()]].concat());
    let said = second.process().stderr();
    for moved in [&page, &otlp, &otlp_http, &api] {
        assert!(said.contains(&format!("{moved} is in use: ")), "{said}");
    }
    assert_ne!(first.page(), second.page());
    assert_ne!(first.kubeconfig(), second.kubeconfig());
    for up in [&first, &second] {
        up.get("/api/v1/info");
        if let Some(nodes) = up.kubectl(&["get", "nodes", "-o", "name"]) {
            assert_eq!(nodes.lines().count(), 3, "{nodes}");
        }
    }

    // A data directory belongs to one.
    let third = home.spawn(&["--data-dir", data.to_str().unwrap()]).output();
    let said = String::from_utf8_lossy(&third.stderr).into_owned();
    assert!(!third.status.success() && said.contains("is in use by process"), "{said}");
    drop(busy);

    // Who names a cluster means its viewer, too.
    for up in [&first, &second] {
        let of = |args: &[&str]| {
            let said = home.command(args).env("KUBECONFIG", up.kubeconfig()).output().unwrap();
            String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned()
        };
        for command in [&["status"][..], &["trace", "head/nobody"], &["check", "--no-probe"]] {
            let said = of(command);
            assert!(said.contains(&up.page().to_string()), "{command:?}: {said}");
        }
    }

    // Commands find the one that was started last, and when it ends the one before it.
    assert!(second.run_command(&home, &["status"]).contains(&second.page().to_string()));
    second.stop_with("INT");
    assert!(first.run_command(&home, &["status"]).contains(&first.page().to_string()));
    first.stop_with("TERM");
    home.wait_until_cleaned_up();
}
