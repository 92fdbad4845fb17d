//! Records that pass operators.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn records_pass_the_operators() {
    let mut fixture = Fixture::new(
        "start_at: beginning, attributes: {site: here}, operators: [\
         {type: json_parser, on_error: drop_quiet}, {type: move, from: attributes.message, to: body}]",
    );
    fixture.write("a.log", "{\"message\": \"sold\", \"count\": \"2\"}\nnot json\n{\"message\": \"done\"}\n");
    fixture.start(&["nop"]);
    let backend = fixture.backend("nop");
    backend.wait_for_bodies(&["sold", "done"]).await;
    let expected = [("count", "2"), ("log.file.name", "a.log"), ("site", "here")];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    assert_eq!(backend.record_attributes().remove(0), expected);
    fixture.stop().await;
    // What an operator dropped is dealt with.
    fixture.write("a.log", "{\"message\": \"more\"}\n");
    fixture.start(&["nop"]);
    backend.wait_for_bodies(&["sold", "done", "more"]).await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_an_operator_holds_are_read_again_after_a_restart() {
    let mut fixture = Fixture::new(
        "start_at: beginning, operators: [{type: recombine, combine_field: body, \
         is_first_entry: 'body startsWith \"S\"', force_flush_period: 1h}]",
    );
    fixture.write("a.log", "S1\na\nS2\nb\n");
    fixture.start(&["nop"]);
    let backend = fixture.backend("nop");
    backend.wait_for_bodies(&["S1\na"]).await;
    fixture.stop().await;
    fixture.write("a.log", "c\nS3\n");
    fixture.start(&["nop"]);
    backend.wait_for_bodies(&["S1\na", "S2\nb\nc"]).await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_an_operator_holds_are_passed_on_in_time() {
    let mut fixture = Fixture::new(
        "start_at: beginning, operators: [{type: recombine, combine_field: body, \
         is_first_entry: 'body startsWith \"S\"', force_flush_period: 50ms}]",
    );
    fixture.write("a.log", "S1\na\n");
    fixture.start(&["nop"]);
    fixture.backend("nop").wait_for_bodies(&["S1\na"]).await;
    fixture.stop().await;
}
