use super::*;

fn options(query: &str) -> Result<LogOptions, StatusError> {
    LogOptions::from_query(&QueryParameters::parse(query), "pod")
}

#[test]
fn nothing_said_is_everything_there_is() {
    assert_eq!(options("").unwrap(), LogOptions::default());
}

#[test]
fn everything_can_be_said() {
    let all = options("follow=true&previous=1&timestamps&sinceSeconds=5&tailLines=0&limitBytes=7").unwrap();
    assert!(all.follow && all.previous && all.timestamps);
    assert_eq!((all.since, all.tail_lines, all.limit_bytes), (Some(LogSince::Seconds(5)), Some(0), Some(7)));
    let time = options("sinceTime=2026-01-02T03:04:05Z").unwrap().since;
    assert_eq!(time, Some(LogSince::Time("2026-01-02T03:04:05Z".parse().unwrap())));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (query, code) in [
        ("tailLines=-1", 422),
        ("limitBytes=0", 422),
        ("sinceSeconds=0", 422),
        ("sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z", 422),
        ("tailLines=many", 400),
        ("sinceTime=yesterday", 400),
    ] {
        assert_eq!(options(query).unwrap_err().code, code, "{query}");
    }
}
