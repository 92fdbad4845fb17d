//! The documented examples of the Collector's contributions, verbatim, decide as documented.

use opentelemetry_proto::tonic::{common::v1::any_value::Value, trace::v1::Span};

use super::support::*;

/// The settings of an example; a condition in OTTL is replaced by one that keeps everything.
fn example(text: &str) -> Setup {
    let settings: Vec<&str> = text.lines().skip_while(|line| line.trim() != "tail_sampling:").skip(1).collect();
    Setup::new(&settings.join("\n").replace("type: ottl_condition", "type: always_sample"))
}

/// Sends the spans of a service.
async fn send(setup: &Setup, service: &str, spans: Vec<Span>) {
    let mut request = request(spans);
    request.resource_spans[0].resource.as_mut().unwrap().attributes = vec![text("service.name", service)];
    setup.try_send(&request).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_practical_one_keeps_by_team_route_and_error() {
    let setup = example(include_str!("../../../../../config/tests/tail_sampling/practical.yaml"));
    let forced = Span { attributes: vec![attribute("app.force_sample", Value::BoolValue(true))], ..span(4) };
    send(&setup, "of-another-team", vec![span(1)]).await;
    send(&setup, "services", vec![span(2)]).await;
    send(&setup, "services", vec![span(3), error(3)]).await;
    send(&setup, "services", vec![forced]).await;
    setup.pass(11_000).await;
    assert_eq!(setup.kept(), [(1, 1), (3, 2), (4, 1)].into());
}

#[tokio::test(start_paused = true)]
async fn the_one_of_volumes_keeps_a_burst_of_five_mebibytes() {
    let setup = example(include_str!("../../../../../config/tests/tail_sampling/volume.yaml"));
    for trace in 1..=6 {
        setup.send(vec![Span { attributes: vec![text("pad", &"x".repeat(1_000_000))], ..span(trace) }]).await;
    }
    setup.pass(31_000).await;
    assert_eq!(setup.kept().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn those_with_all_policies_run() {
    for text in [
        include_str!("../../../../../config/tests/tail_sampling/policies.yaml"),
        include_str!("../../../../../config/tests/tail_sampling/detailed.yaml"),
    ] {
        let setup = example(text);
        // More traces than the limit, so that they are decided one by one.
        for trace in 1..=300 {
            setup.send(vec![span(trace), error(trace)]).await;
        }
        setup.pass(11_000).await;
        let kept = setup.kept();
        assert!(kept.len() == 300 && kept.values().all(|spans| *spans == 2), "{kept:?}");
    }
}
