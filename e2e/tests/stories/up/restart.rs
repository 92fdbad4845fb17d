//! With a data directory it goes on where it ended.

use std::collections::BTreeSet;

use kubewake_e2e::{
    traces::SpanRef,
    up::{Home, link_in, trace_in},
};

use super::new_head;

#[test]
fn objects_traces_and_addresses_are_there_again() {
    let home = Home::default();
    let data = home.path().join("data");
    let args = ["--data-dir", data.to_str().unwrap()];
    let up = home.up(&args);
    let (page, kubeconfig) = (up.page(), up.kubeconfig().to_owned());
    let link = link_in(up.screen()).to_owned();
    up.becomes(&link, &new_head());
    let before: BTreeSet<SpanRef> = up.spans(&link).iter().map(|span| span.id.clone()).collect();
    up.kubectl(&["create", "configmap", "mine", "--from-literal=a=b"]);
    up.end("TERM");

    // Without a word about ports it has those of before.
    let up = home.up_with(&args);
    assert_eq!((up.page(), up.kubeconfig()), (page, kubeconfig.as_str()));
    assert_eq!(link_in(up.screen()), link, "the Head is the one of before");
    // That its pods were gone for a moment may have been told since, in the same trace.
    let after: BTreeSet<SpanRef> = up.spans(&link).iter().map(|span| span.id.clone()).collect();
    assert!(before.is_subset(&after), "{} of {} spans are left", after.len(), before.len());
    if let Some(found) = up.kubectl(&["get", "configmap/mine", "head/sample", "-o", "name"]) {
        assert_eq!(found.lines().count(), 2, "{found}");
    }
    assert!(up.get("/api/v1/search?kind=Head&name=sample").to_string().contains(trace_in(&link)));
    // What ran runs again, and works.
    let told = up.types(&home, &["demo", "head"]);
    assert!(told.contains("is changed"), "{told}");
    up.end("TERM");
}
