use super::*;

fn example() -> TraceDocument {
    let text = serde_json::json!({
        "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "start": "1700000000000000000", "duration": 2_000_000_000u64,
        "services": [{"name": "kube-apiserver", "attributes": []}, {"name": "head-operator"}],
        "spans": [
            {"id": "1", "name": "PATCH /apis/example.com/v1/heads/demo", "kind": "server", "start": "1700000000000000000", "duration": 12_300_000, "resource": 0, "status": "unset"},
            {"id": "2", "parent": "1", "name": "reconcile Head", "start": "1700000000020000000", "duration": 400_000_000, "resource": 1, "status": "ok"},
            {"id": "3", "parent": "2", "name": "apply ChildA", "start": "1700000000030000000", "duration": 5_000_000, "resource": 1, "status": "unset"},
            {"id": "4", "parent": "3", "name": "PATCH /apis/…", "start": "1700000000031000000", "duration": 3_000_000, "resource": 0, "status": "unset"},
            {"id": "5", "parent": "2", "name": "apply ChildB", "start": "1700000000200000000", "duration": 100_000_000, "resource": 1, "status": "error", "message": "refused: \u{1b}[31mno\nrights"},
            {"id": "6", "parent": "1", "name": "converge Head", "start": "1700000001500000000", "duration": 500_000_000, "resource": 1, "status": "ok"},
        ],
        "warnings": [
            {"kind": "clock_skew", "spanId": "3", "message": "the span's clock is 3 ms behind its parent's clock"},
            {"kind": "truncated", "message": "2 spans beyond the limit of one trace were dropped"},
        ],
    });
    serde_json::from_value(text).unwrap()
}

#[test]
fn a_trace_is_a_waterfall() {
    let expected = "\
6 spans of 2 services in 2 s, 1 error: kube-apiserver, head-operator
http://v/trace/4bf92f3577b34da6a3ce929d0e0e4736
                                                            0                                    2 s
kube-apiserver · PATCH …/heads/demo                12.3 ms  ▌
├ head-operator · reconcile Head                    400 ms  ████████
│ ├ apply ChildA                                      5 ms  ▌
│ │ └ kube-apiserver · PATCH /apis/…                  3 ms  ▌
│ ⋯ 165 ms                                                  ····
│ └ ✗ apply ChildB                                  100 ms      ██
│     refused: \\u{1b}[31mno\\nrights
⋯ 1.08 s                                                            ······················
└ head-operator · converge Head                     500 ms                                ██████████
! head-operator · apply ChildA: the span's clock is 3 ms behind its parent's clock
! 2 spans beyond the limit of one trace were dropped
";
    let drawn = render_waterfall(&example(), "http://v", true, &TerminalLayout::plain(100));
    assert_eq!(drawn, expected, "\n{drawn}");
}

#[test]
fn a_deep_tree_is_drawn_with_less_room_for_each_level() {
    let spans = (0..30).map(|index: u64| SpanDocument {
        id: index.to_string(),
        parent: index.checked_sub(1).map(|parent| parent.to_string()),
        name: format!("level {index}"),
        ..SpanDocument::default()
    });
    let trace = TraceDocument { spans: spans.collect(), duration: 1, ..TraceDocument::default() };
    let drawn = render_waterfall(&trace, "http://v", true, &TerminalLayout::plain(100));
    let begins: Vec<usize> = drawn.lines().skip(3).map(|line| line.chars().position(|c| c == 'l').unwrap()).collect();
    let expected: Vec<usize> = (0..30).map(|level: usize| level.min(22)).collect();
    assert_eq!(begins, expected, "{drawn}");
}

#[test]
fn on_a_narrow_screen_there_are_no_bars() {
    let drawn = render_waterfall(&example(), "http://v", true, &TerminalLayout::plain(40));
    assert!(drawn.lines().skip(2).all(|line| display_width(line) <= 40), "{drawn}");
    assert!(!drawn.contains('█') && drawn.contains("converge"), "{drawn}");
}

#[test]
fn no_line_is_wider_than_the_screen_however_hostile_a_trace_is() {
    let span = |index: u64| SpanDocument {
        id: index.to_string(),
        parent: index.checked_sub(1).map(|parent| parent.to_string()),
        name: format!("\u{1b}]0;title\u{7}{}", "日本".repeat(200)),
        start: if index.is_multiple_of(2) { 0 } else { u64::MAX },
        duration: u64::MAX,
        resource: 99,
        status: "error".to_owned(),
        message: Some("\r\n".repeat(500)),
        ..SpanDocument::default()
    };
    let trace =
        TraceDocument { spans: (0..200).map(span).collect(), start: 5, duration: 0, ..TraceDocument::default() };
    for columns in [40, 79, 200] {
        let drawn = render_waterfall(&trace, "http://v", true, &TerminalLayout::plain(columns));
        let wide: Vec<&str> = drawn.lines().skip(2).filter(|line| display_width(line) > columns).collect();
        assert!(wide.is_empty(), "{columns}: {wide:?}");
        assert!(!drawn.contains(['\u{1b}', '\r', '\u{7}']));
    }
}

#[test]
fn colours_change_no_letter() {
    let plain = render_waterfall(&example(), "http://v", true, &TerminalLayout::plain(100));
    let coloured = render_waterfall(&example(), "http://v", true, &TerminalLayout { width: 100, colours: true });
    assert_ne!(plain, coloured);
    let without: Vec<String> =
        coloured.lines().map(|line| console::strip_ansi_codes(line).trim_end().to_owned()).collect();
    assert_eq!(without, plain.lines().collect::<Vec<_>>());
}
