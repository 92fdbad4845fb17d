use std::collections::BTreeSet;

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    args: WebhookArgs,
}

fn parse(words: &str) -> Result<WebhookArgs, String> {
    let words = ["webhook"].into_iter().chain(words.split(' ').filter(|word| !word.is_empty()));
    Cli::try_parse_from(words).map(|cli| cli.args).map_err(|error| error.to_string())
}

fn endpoint(words: &str, listens: &str) -> Result<WebhookTarget, String> {
    let args = parse(&format!("--select v1/pods {words}")).unwrap();
    args.webhook_endpoint(listens.parse().unwrap()).map_err(|error| format!("{error:#}"))
}

fn url(endpoint: &WebhookTarget) -> Option<String> {
    endpoint.client_config(PATH).url
}

#[test]
fn an_api_server_calls_where_it_listens_or_where_it_is_told() {
    let here = endpoint("", "127.0.0.1:9443").unwrap();
    assert_eq!(url(&here).as_deref(), Some("https://127.0.0.1:9443/stamp"));
    assert_eq!(here.names(), BTreeSet::from(["127.0.0.1".to_owned()]));
    for given in
        ["https://hook.example.com:8443", "https://hook.example.com:8443/", "https://hook.example.com:8443/stamp"]
    {
        let there = endpoint(&format!("--url {given}"), "0.0.0.0:9443").unwrap();
        assert_eq!(url(&there).as_deref(), Some("https://hook.example.com:8443/stamp"));
        assert_eq!(there.names(), BTreeSet::from(["hook.example.com".to_owned()]));
    }
    let six = endpoint("", "[::1]:9443").unwrap();
    assert_eq!(
        (url(&six).as_deref(), six.names()),
        (Some("https://[::1]:9443/stamp"), BTreeSet::from(["::1".to_owned()]))
    );
}

#[test]
fn a_service_is_called_by_its_names() {
    let service = endpoint("--service tracing/hook:8443", "0.0.0.0:9443").unwrap();
    let config = service.client_config(PATH).service.unwrap();
    assert_eq!(
        (&*config.namespace, &*config.name, config.port, config.path.as_deref()),
        ("tracing", "hook", Some(8443), Some("/stamp"))
    );
    assert!(service.names().contains("hook.tracing.svc"));
    assert_eq!(
        endpoint("--service tracing/hook", "0.0.0.0:1").unwrap().client_config(PATH).service.unwrap().port,
        Some(443)
    );
}

#[test]
fn places_that_no_api_server_can_call_are_refused() {
    for (words, why) in [
        ("--url http://hook:1", "https://"),
        ("--url /stamp", "https://"),
        ("--url https://hook/other", "/stamp"),
        ("--url https://user@hook/", "no user"),
        ("", "--service or --url"),
    ] {
        let error = endpoint(words, "0.0.0.0:9443").unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn bad_words_are_told() {
    for (words, why) in [
        ("", "--select"),
        ("--select pods", "GROUP/VERSION/RESOURCE"),
        ("--select v1/events", "never stamped"),
        ("--select v1/pods --namespace-selector a(b", "requirement of a label selector"),
        ("--select v1/pods --certificate-secret hook", "NAMESPACE/NAME"),
        ("--select v1/pods --certificate-lifetime soon", "90d"),
        ("--select v1/pods --service a/b --url https://x", "cannot be used with"),
        ("--select v1/pods --trust-namespace a --distrust-namespace b", "cannot be used with"),
    ] {
        let error = parse(words).unwrap_err();
        assert!(error.contains(why), "{words}: {error}");
    }
    let args = parse("--select v1/pods --annotation-prefix Not/A/Prefix").unwrap();
    assert!(format!("{:#}", args.context_keys().unwrap_err()).contains("--annotation-prefix"));
}

#[test]
fn times_are_read() {
    let args = parse("--select v1/pods --certificate-lifetime 90d").unwrap();
    assert_eq!(args.certificate_lifetime, Some(Duration::from_secs(90 * 24 * 3600)));
    assert_eq!(parse_duration("1h 30m").unwrap(), Duration::from_secs(5400));
    assert!(parse_duration("-1h").is_err());
}
