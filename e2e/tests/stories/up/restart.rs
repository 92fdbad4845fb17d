//! With a data directory it goes on where it ended.

use std::collections::BTreeSet;

use kubewake_e2e::{
    traces::SpanReference,
    up_process::{HomeDir, link_in, trace_in},
};

use super::new_head;

#[test]
fn objects_traces_and_addresses_are_there_again() {
    let home = HomeDir::default();
    let data = home.path().join("data");
    let args = ["--data-dir", data.to_str().unwrap()];
    let up = home.start(&args);
    let page = up.page();
    let kubeconfig = up.kubeconfig().to_owned();
    let link = link_in(up.screen()).to_owned();
    up.wait_until_matches(&link, &new_head());
    let before: BTreeSet<SpanReference> = up.spans(&link).iter().map(|span| span.id.clone()).collect();
    up.kubectl(&["create", "configmap", "mine", "--from-literal=a=b"]);
    up.stop_with("TERM");

    // Without a word about ports it has those of before.
    let up = home.start_with(&args);
    assert_eq!((up.page(), up.kubeconfig()), (page, kubeconfig.as_str()));
    assert_eq!(link_in(up.screen()), link, "the Head is the one of before");
    // That its pods were gone for a moment may have been told since, in the same trace.
    let after: BTreeSet<SpanReference> = up.spans(&link).iter().map(|span| span.id.clone()).collect();
    assert!(before.is_subset(&after), "{} of {} spans are left", after.len(), before.len());
    if let Some(found) = up.kubectl(&["get", "configmap/mine", "head/sample", "-o", "name"]) {
        assert_eq!(found.lines().count(), 2, "{found}");
    }
    assert!(up.get("/api/v1/search?kind=Head&name=sample").to_string().contains(trace_in(&link)));
    // What ran runs again, and works.
    let told = up.run_command(&home, &["demo", "head"]);
    assert!(told.contains("is changed"), "{told}");
    up.stop_with("TERM");
}
