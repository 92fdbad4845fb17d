//! A backend refuses a request for good because of one span in it.

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, Http1Connection, HttpBackend, backend::accepted_reply, http_to, otlp::spans,
    wait_until,
};

#[test]
fn one_senders_poison_never_costs_anothers_data() {
    let backend =
        HttpBackend::start(
            |request| if request.contains("poison") { (400, Vec::new(), Vec::new()) } else { accepted_reply() },
        );
    let config = ConfigBuilder::exporting_to("otlphttp", http_to(backend.address()).with_setting("compression: none"))
        // It leaves when the seventh request is in it, never by time.
        .processor("batch", "{timeout: 10m, send_batch_size: 7}")
        .pipeline("traces", "batch", "otlphttp");
    let collector = CollectorProcess::with_config(config).start();
    let names = ["one", "two", "three", "poison", "five", "six", "seven"];
    let mut connection = Http1Connection::connect(collector.http());
    for name in names {
        assert_eq!(connection.post("/v1/traces", "application/x-protobuf", &spans(&[name])).status, 200);
    }
    let dropped = || collector.metric("kubewake_pipeline_dropped_items", &["reason=\"refused\""]);
    wait_until("the poison is dropped", || dropped() == 1.0);
    wait_until("the others are delivered", || {
        collector.metric("kubewake_pipeline_delivered_items", &["pipeline=\"traces\""]) == 6.0
    });
    let requests = backend.requests();
    let joined = &requests[0];
    assert!(names.iter().all(|name| joined.contains(name)), "they were joined at first");
    for name in names.into_iter().filter(|name| *name != "poison") {
        let times = requests.iter().filter(|request| !request.contains("poison") && request.contains(name)).count();
        assert_eq!(times, 1, "{name} is taken once");
    }
    let poisoned = requests.iter().filter(|request| request.contains("poison")).count();
    assert_eq!(poisoned, 2, "with the others, and by itself");
    assert_eq!(collector.metric("otelcol_exporter_sent_spans", &[]), 6.0);
    assert_eq!(collector.metric("otelcol_exporter_send_failed_spans", &[]), 1.0);
}

#[test]
fn a_trace_that_was_sampled_as_a_whole_loses_only_the_poisoned_senders_spans() {
    let backend =
        HttpBackend::start(
            |request| if request.contains("poison") { (400, Vec::new(), Vec::new()) } else { accepted_reply() },
        );
    let all = "{decision_wait: 10m, policies: [{name: all, type: always_sample}]}";
    let config = ConfigBuilder::exporting_to("otlphttp", http_to(backend.address()).with_setting("compression: none"))
        .processor("tail_sampling", all)
        .pipeline("traces", "tail_sampling", "otlphttp");
    let mut collector = CollectorProcess::with_config(config).start();
    let names: Vec<String> = (0..40).map(|n| format!("<{n}>")).collect();
    let mut connection = Http1Connection::connect(collector.http());
    for name in names.iter().map(String::as_str).chain(["poison"]) {
        assert_eq!(connection.post("/v1/traces", "application/x-protobuf", &spans(&[name])).status, 200);
    }
    // The end makes it time for all that waits, so that it leaves together.
    assert!(collector.stop().success());
    let requests = backend.requests();
    assert!(names.iter().all(|name| requests[0].contains(name)), "they were joined at first");
    for name in &names {
        let times = requests.iter().filter(|request| !request.contains("poison") && request.contains(name)).count();
        assert_eq!(times, 1, "{name} is taken once");
    }
}

#[test]
fn requests_that_were_cut_lose_no_more_than_the_poisoned_one() {
    let backend =
        HttpBackend::start(
            |request| if request.contains("poison") { (400, Vec::new(), Vec::new()) } else { accepted_reply() },
        );
    let to = http_to(backend.address()).with_setting("compression: none");
    let batch = "{timeout: 50ms, send_batch_size: 7, send_batch_max_size: 7}";
    let by_processor =
        ConfigBuilder::exporting_to("otlphttp", &to).processor("batch", batch).pipeline("traces", "batch", "otlphttp");
    let queue = "sending_queue: {batch: {flush_timeout: 50ms, min_size: 7, max_size: 7, sizer: items}}";
    let by_queue = ConfigBuilder::exporting_to("otlphttp", to.with_setting(queue));
    for config in [by_processor, by_queue] {
        let before = backend.requests().len();
        let collector = CollectorProcess::with_config(config).start();
        let mut connection = Http1Connection::connect(collector.http());
        for request in 0..10 {
            let names: Vec<String> = (0..5).map(|span| format!("{request}-{span}-good")).collect();
            let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
            if request == 4 {
                names[2] = "poison";
            }
            // While one batch waits and another is full, senders are asked to come back.
            wait_until("the request is accepted", || {
                let status = connection.post("/v1/traces", "application/x-protobuf", &spans(&names)).status;
                assert!([200, 503].contains(&status), "{status}");
                status == 200
            });
        }
        let count = |name: &str| collector.metric(name, &["pipeline=\"traces\""]);
        wait_until("all items are delivered or dropped", || {
            count("kubewake_pipeline_delivered_items") + count("kubewake_pipeline_dropped_items") == 50.0
        });
        let taken = backend.requests().split_off(before);
        let taken: Vec<_> = taken.iter().filter(|request| !request.contains("poison")).collect();
        for request in (0..10).filter(|request| *request != 4) {
            for span in 0..5 {
                let name = format!("{request}-{span}-good");
                let times = taken.iter().filter(|request| request.contains(&name)).count();
                assert_eq!(times, 1, "{name} is taken once");
            }
        }
        assert!(count("kubewake_pipeline_dropped_items") <= 5.0);
    }
}
