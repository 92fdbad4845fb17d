//! Somebody changes their mind.

use super::{
    anywhere, head, is, is_real, operator,
    parts::{self, CONVERGENCE},
    rule::Rule,
    stop, tell_only, wait_ready, webhook,
};

/// What came of the first change until the second: all but that it ever was ready.
fn first() -> String {
    let ready = CONVERGENCE.lines().filter(|line| line.contains("converge"));
    parts::with(CONVERGENCE, &ready.map(|line| (line, "")).collect::<Vec<_>>())
}

/// What came of the second. Whatever takes over from the first trace links to it.
const SECOND: &str = "
PATCH DEMO/heads/{:name} [apiserver] server x1
  stamp Head [kubewake-webhook] server ~> stamp Head x1
    converge Head [head-operator] internal ~> stamp Head x1
    reconcile Head [head-operator] consumer ~> stamp Head x1
      apply ChildA [head-operator] producer x1
        PATCH DEMO/childas/{:name} [head-operator] client x1
          PATCH DEMO/childas/{:name} [apiserver] server x1
            <changed stamp inside>
        <changed stamp beside>
        converge ChildA [head-operator] internal ~> apply ChildA x1
        reconcile ChildA [head-operator] consumer ~> apply ChildA x1
          <deployment>
          <status of ChildA>
          <event again>
        reconcile ChildA [head-operator] consumer
          ? apply Deployment [head-operator] producer
            ? PATCH APPS/deployments/{:name} [head-operator] client
              ? PATCH APPS/deployments/{:name} [apiserver] server
          <status of ChildA>
          <events>
      <list>
      <status of Head>
      <event again>
    reconcile Head [head-operator] consumer
      # An answer that is newer than anything seen counts as a change, whoever made it.
      ? apply ChildA [head-operator] producer
        ? PATCH DEMO/childas/{:name} [head-operator] client
          ? PATCH DEMO/childas/{:name} [apiserver] server
            ? stamp ChildA [kubewake-webhook] server
      # The API server records what it is asked by a run that has changed something already.
      GET DEMO/childas [head-operator] client
        ? GET DEMO/childas [apiserver] server
      <status of Head>
      <events>
";

#[test]
fn a_change_before_the_first_is_done_is_a_trace_of_its_own_with_links_to_the_first() {
    let Some(traced) = anywhere() else { return };
    let kubectl = &traced.kubectl;
    let webhook = webhook(&traced);
    // The first is never ready.
    let rule = Rule::no_pods(&traced);
    let operator = operator(&traced, &[]);
    kubectl.run_ok_with("apply -f -", &head("one", "first"));
    let change = traced.traces.wait_for_span("stamp Head", is_real);
    traced.traces.wait_until_matches(&change.id.trace, &parts::whole(traced.traces.callers(), &first()));
    kubectl.run_ok_with("apply -f -", &head("one", "second"));
    kubectl.run_ok("wait --for=jsonpath={.status.observedGeneration}=2 head/one --timeout=60s");
    rule.lift();
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.stop();
    let second = traces.wait_for_span("stamp Head", |span| span.links.contains(&change.id));
    is(&traces, &change.id.trace, &first());
    is(&traces, &second.id.trace, SECOND);
    tell_only(&traces, &[&change.id.trace, &second.id.trace]);
}

#[test]
fn two_changes_at_once_are_two_traces_that_know_each_other() {
    let Some(traced) = anywhere() else { return };
    let kubectl = &traced.kubectl;
    let webhook = webhook(&traced);
    kubectl.run_ok_with("apply -f -", &head("one", "first"));
    kubectl.run_ok_with("apply -f -", &head("one", "second"));
    let operator = operator(&traced, &[]);
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.stop();
    let first = traces.wait_for_span("stamp Head", |span| is_real(span) && span.links.is_empty());
    let second = traces.wait_for_span("stamp Head", |span| span.links.contains(&first.id));
    // Nobody saw the first, so that nobody has anything to take over from it: the second is as if it were the only one.
    let second_alone = parts::with(
        CONVERGENCE,
        &[
            ("POST DEMO/heads [apiserver]", "PATCH DEMO/heads/{:name} [apiserver]"),
            ("stamp Head [kubewake-webhook] server", "stamp Head [kubewake-webhook] server ~> stamp Head"),
            ("converge Head [head-operator] internal", "converge Head [head-operator] internal ~> stamp Head"),
        ],
    );
    is(&traces, &second.id.trace, &second_alone);
    is(&traces, &first.id.trace, "POST DEMO/heads [apiserver] server x1\n  stamp Head [kubewake-webhook] server x1");
    tell_only(&traces, &[&first.id.trace, &second.id.trace]);
}
