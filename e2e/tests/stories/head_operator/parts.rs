//! Traces as texts, written short: what is the same in every story has a name, and paths have one for what they
//! begin with.

use kubewake_e2e::traces::CallerVisibility;

/// Everything that comes of a Head with one child. Where something may happen once or more often, no number is said.
pub(in super::super) const CONVERGENCE: &str = "
POST DEMO/heads [apiserver] server x1
  stamp Head [kubewake-webhook] server x1
    converge Head [head-operator] internal x1
    reconcile Head [head-operator] consumer
      <apply ChildA>
        converge ChildA [head-operator] internal x1
        reconcile ChildA [head-operator] consumer
          <deployment>
          <status of ChildA>
          <events>
      <list>
      <status of Head>
      <events>
";

/// What a line `<name>` stands for. Where something may happen once or more often, no number is said.
const PARTS: [(&str, &str); 10] = [
    (
        "run of Head",
        "<apply ChildA>
  converge ChildA [head-operator] internal
<list>
<status of Head>
<events>",
    ),
    (
        "run of ChildA",
        "<deployment>
<status of ChildA>
<events>",
    ),
    (
        // Its own children may follow.
        "apply ChildA",
        "apply ChildA [head-operator] producer
  PATCH DEMO/childas/{:name} [head-operator] client
    PATCH DEMO/childas/{:name} [apiserver] server
      <stamp inside>
  <stamp beside>",
    ),
    (
        "deployment",
        "apply Deployment [head-operator] producer
  PATCH APPS/deployments/{:name} [head-operator] client
    PATCH APPS/deployments/{:name} [apiserver] server",
    ),
    (
        "status of ChildA",
        "status ChildA [head-operator] internal
  PATCH DEMO/childas/{:name}/status [head-operator] client
    PATCH DEMO/childas/{:name}/status [apiserver] server",
    ),
    (
        "status of Head",
        "status Head [head-operator] internal
  PATCH DEMO/heads/{:name}/status [head-operator] client
    PATCH DEMO/heads/{:name}/status [apiserver] server",
    ),
    (
        "list",
        "GET DEMO/childas [head-operator] client
  GET DEMO/childas [apiserver] server",
    ),
    (
        "events",
        "<event>
<event again>",
    ),
    (
        "event",
        "POST EVENTS/events [head-operator] client
  POST EVENTS/events [apiserver] server",
    ),
    (
        // The same event again is counted in the old one.
        "event again",
        "? PATCH EVENTS/events/{:name} [head-operator] client
  ? PATCH EVENTS/events/{:name} [apiserver] server",
    ),
];

const PATHS: [(&str, &str); 3] =
    [("DEMO/", "demo.kubewake.io/v1alpha1"), ("APPS/", "apps/v1"), ("EVENTS/", "events.k8s.io/v1")];

/// How a child that the operator applies is stamped, and how when that changes it: inside of the API server's
/// request, and beside it.
///
/// The webhook believes the writer's own context more than a trace that the API server began for it, and links
/// that; where the same is applied again there is nothing to stamp, and no link. An API server that tells
/// nobody may also not pass contexts on; then the webhook has only that of the writer.
fn stamps(callers: CallerVisibility) -> [(&'static str, &'static str); 4] {
    let [inside, beside, inside_again, beside_again] = match callers {
        CallerVisibility::Trusted => [
            "stamp ChildA [kubewake-webhook] server",
            "",
            "stamp ChildA [kubewake-webhook] server ~> apply ChildA x1",
            "",
        ],
        CallerVisibility::Linked => [
            "? stamp ChildA [kubewake-webhook] server",
            "stamp ChildA [kubewake-webhook] server ~> HTTP POST",
            "? stamp ChildA [kubewake-webhook] server",
            "stamp ChildA [kubewake-webhook] server ~> HTTP POST ~> apply ChildA x1",
        ],
        CallerVisibility::Hidden => [
            "? stamp ChildA [kubewake-webhook] server",
            "? stamp ChildA [kubewake-webhook] server",
            "? stamp ChildA [kubewake-webhook] server ~> apply ChildA x1",
            "? stamp ChildA [kubewake-webhook] server ~> apply ChildA x1",
        ],
    };
    [
        ("stamp inside", inside),
        ("stamp beside", beside),
        ("changed stamp inside", inside_again),
        ("changed stamp beside", beside_again),
    ]
}

/// The whole text, as it is with an API server that treats its callers like this.
pub(in super::super) fn whole(callers: CallerVisibility, short: &str) -> String {
    let parts = PARTS.into_iter().chain(stamps(callers));
    let lines = parts.fold(short.to_owned(), |text, (name, part)| {
        let line = |line: &str| match line.trim_start() {
            found if found == format!("<{name}>") => indented(part, line.len() - found.len()),
            _ => line.to_owned(),
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    });
    PATHS.iter().fold(lines, |text, (short, group)| {
        text.replace(&format!(" {short}"), &format!(" /apis/{group}/namespaces/{{:namespace}}/"))
    })
}

/// A text in which some words, all of which are there, are others.
pub(in super::super) fn with(text: &str, instead: &[(&str, &str)]) -> String {
    instead.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from:?} is not in {text}");
        text.replace(from, to)
    })
}

fn indented(part: &str, depth: usize) -> String {
    part.lines().map(|line| format!("{}{line}", " ".repeat(depth))).collect::<Vec<_>>().join("\n")
}
