//! A Head no longer lists one of its children.

use kubewake_e2e::wait_until;

use super::{anywhere, head, is, is_real, operator, stop, tell_only, wait_ready, webhook};

/// What came of the change. Nothing else changed, so that nothing else is written.
const TRACE: &str = "
PATCH DEMO/heads/{:name} [apiserver] server x1
  stamp Head [kubewake-webhook] server ~> stamp Head x1
    converge Head [head-operator] internal ~> stamp Head x1
    reconcile Head [head-operator] consumer ~> stamp Head x1
      GET DEMO/childas [head-operator] client x1
        ? GET DEMO/childas [apiserver] server x1
      DELETE DEMO/childas/{:name} [head-operator] client x1
        DELETE DEMO/childas/{:name} [apiserver] server x1
      status Head [head-operator] internal x1
        PATCH DEMO/heads/{:name}/status [head-operator] client x1
          PATCH DEMO/heads/{:name}/status [apiserver] server x1
";

#[test]
fn a_child_that_is_no_longer_listed_goes_in_the_trace_of_that_change() {
    let Some(traced) = anywhere() else { return };
    let kubectl = &traced.kubectl;
    let webhook = webhook(&traced);
    let operator = operator(&traced, &[]);
    let one = head("one", "first");
    let second = one.lines().skip_while(|line| !line.contains("- name")).map(|line| line.replace("name: a", "name: b"));
    let both = format!("{}\n{}", one.trim_end(), second.collect::<Vec<_>>().join("\n"));
    kubectl.run_ok_with("apply -f -", &both);
    wait_ready(&traced, "one");
    let first = traced.traces.wait_for_span("stamp Head", is_real);
    // Its last words about the first change.
    traced.traces.wait_for_span("converge Head", |_| true);
    kubectl.run_ok_with("apply -f -", &one);
    kubectl.run_ok("wait --for=jsonpath={.status.observedGeneration}=2 head/one --timeout=60s");
    wait_until("the child and its Deployment are deleted", || {
        !kubectl.exists("childa one-b") && !kubectl.exists("deployment one-b")
    });
    assert!(kubectl.exists("deployment one-a"));
    stop(operator);
    stop(webhook);
    let traces = traced.stop();
    let second = traces.wait_for_span("stamp Head", |span| span.links.contains(&first.id));
    is(&traces, &second.id.trace, TRACE);
    tell_only(&traces, &[&first.id.trace, &second.id.trace]);
}
