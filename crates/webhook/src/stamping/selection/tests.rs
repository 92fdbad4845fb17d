use super::*;

#[test]
fn resources_are_read_and_written_alike() {
    for text in
        ["apps/v1/deployments", "v1/pods", "*/configmaps", "example.com/*/*", "*/*/*", "kubewake.io/v1alpha1/heads"]
    {
        assert_eq!(text.parse::<ResourcePattern>().unwrap().to_string(), text);
    }
}

#[test]
fn what_names_no_resources_is_told_how_to() {
    for bad in [
        "",
        "pods",
        "pods/status",
        "apps/deployments",
        "v1/pods/status",
        "apps/v1/deployments/scale",
        "Apps/v1/x",
        "v1/",
    ] {
        assert_eq!(bad.parse::<ResourcePattern>(), Err(InvalidResourcePattern::Malformed(bad.to_owned())), "{bad}");
    }
}

#[test]
fn heartbeats_and_reviews_cannot_be_selected() {
    for bad in ["v1/events", "coordination.k8s.io/v1/leases", "authorization.k8s.io/v1/*", "events.k8s.io/v1/events"] {
        assert_eq!(bad.parse::<ResourcePattern>(), Err(InvalidResourcePattern::NeverStamped(bad.to_owned())), "{bad}");
    }
}

#[test]
fn a_webhook_never_stands_in_the_way() {
    let select = ObjectSelection::new(vec!["apps/v1/deployments".parse().unwrap(), "v1/pods".parse().unwrap()]);
    let webhook = select.webhook("stamp.example.com", WebhookClientConfig::default());
    assert_eq!(webhook.failure_policy.as_deref(), Some("Ignore"));
    assert_eq!((webhook.timeout_seconds, &*webhook.side_effects), (Some(2), "None"));
    let rules = webhook.rules.unwrap();
    assert_eq!(rules[0].api_groups, Some(vec!["apps".to_owned()]));
    assert_eq!(rules[1].resources, Some(vec!["pods".to_owned()]));
    assert!(rules.iter().all(|rule| rule.operations == Some(vec!["CREATE".to_owned(), "UPDATE".to_owned()])));
}

#[test]
fn selectors_are_read_as_kubectl_writes_them() {
    let requirement = |key: &str, operator: &str, values: Option<&[&str]>| LabelSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: values.map(|values| values.iter().map(|value| (*value).to_owned()).collect()),
    };
    let read = parse_selector("a=b, c!=d,e==f,g in (h, i),k8s.io/j notin (k),l,!m").unwrap();
    let expected = [
        requirement("a", "In", Some(&["b"])),
        requirement("c", "NotIn", Some(&["d"])),
        requirement("e", "In", Some(&["f"])),
        requirement("g", "In", Some(&["h", "i"])),
        requirement("k8s.io/j", "NotIn", Some(&["k"])),
        requirement("l", "Exists", None),
        requirement("m", "DoesNotExist", None),
    ];
    assert_eq!(read.match_expressions.unwrap(), expected);
    assert_eq!(parse_selector("").unwrap(), LabelSelector::default());
    let long = format!("a={}", "b".repeat(64));
    for bad in [
        "=b",
        "a b",
        "a within (b)",
        "a in b)",
        "a=b c",
        "!",
        ",",
        "a=b,",
        "a,,b",
        "a in (b))",
        "a in ()",
        "!!a",
        "-a=b",
        "a/b/c",
        "A.b/c",
        "a=-b",
        "a=b=c",
        "a in (b",
        &long,
    ] {
        assert!(parse_selector(bad).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn what_no_api_server_has_is_told_with_what_may_be_meant() {
    use kubewake_apiserver::server::{ApiServer, Options};
    let server = ApiServer::start(Options::default()).await.unwrap();
    let unserved = async |selected: &[&str]| {
        let select = ObjectSelection::new(selected.iter().map(|text| text.parse().unwrap()).collect());
        select.unserved(&server.client().unwrap()).await.unwrap()
    };
    let there = ["v1/configmaps", "apps/v1/deployments", "apps/*/deployments", "*/*/pods", "v1/*", "apps/*/*", "*/*/*"];
    assert_eq!(unserved(&there).await, Vec::<String>::new());
    let wrong = ["apps/v1/deployment", "v1/deployments", "apps/v2/deployments", "networking.k8s.io/v1/networkpolicy"];
    let sentences = unserved(&wrong).await;
    for (sentence, meant) in sentences.iter().zip([
        "apps/v1/deployments",
        "apps/v1/deployments",
        "apps/v1/deployments",
        "networking.k8s.io/v1/networkpolicies",
    ]) {
        assert!(
            sentence.contains("is not served by the API server") && sentence.ends_with(&format!("mean {meant}?")),
            "{sentence}"
        );
    }
    assert_eq!(sentences.len(), wrong.len());
    for (mistyped, meant) in [("v1/confgmaps", "v1/configmaps"), ("apps/v1/deploymnets", "apps/v1/deployments")] {
        let sentences = unserved(&[mistyped]).await;
        assert!(sentences[0].ends_with(&format!("mean {meant}?")), "{sentences:?}");
    }
    let unlike = unserved(&["example.com/*/*"]).await;
    assert!(
        unlike[0].starts_with("selected resource example.com/*/* is not served") && !unlike[0].contains("mean"),
        "{unlike:?}"
    );
    server.stop().await;
}
