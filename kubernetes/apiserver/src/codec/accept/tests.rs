use super::*;

const OBJECT: EndpointRestrictions = EndpointRestrictions { custom: false, answer: ResponseKind::Object };
const LIST: EndpointRestrictions = EndpointRestrictions { custom: false, answer: ResponseKind::List };
const WATCH: EndpointRestrictions = EndpointRestrictions { custom: false, answer: ResponseKind::Watch };

fn ask(accept: &str, endpoint: EndpointRestrictions) -> Result<MediaTypeOptions, StatusError> {
    negotiate(Some(accept), Some("test/1"), &QueryParameters::default(), endpoint)
}

#[track_caller]
fn media(accept: &str, endpoint: EndpointRestrictions) -> MediaType {
    ask(accept, endpoint).expect(accept).media
}

#[test]
fn the_router_refuses_what_it_does_not_know_by_name() {
    let status = check_route_accepts(Some("text/plain"), ResponseKind::List, &[]).expect_err("a refusal");
    let message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf, application/json;stream=watch, \
                   application/vnd.kubernetes.protobuf;stream=watch";
    assert_eq!((status.code, status.reason, status.message.as_str()), (406, "NotAcceptable", message));
    assert_eq!(status.details.as_deref(), Some(&StatusDetails::default()));
    for accept in ["application/cbor", "application/*", "Application/JSON", "text/*;q=0.3", "application/json\t"] {
        let status = check_route_accepts(Some(accept), ResponseKind::Object, &[]).expect_err(accept);
        assert!(status.message.ends_with("application/vnd.kubernetes.protobuf"), "{accept}");
    }
    for accept in ["", "*/*", "text/html, */*;q=0.1", "a/b , application/yaml ;q=0", "application/json;as=Nothing"] {
        assert_eq!(check_route_accepts(Some(accept), ResponseKind::Object, &[]), Ok(()), "{accept}");
    }
    assert_eq!(check_route_accepts(Some("text/plain"), ResponseKind::Object, &["text/plain"]), Ok(()));
}

#[test]
fn unknown_forms_are_refused() {
    let message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    for accept in ["application/json;as=Bogus;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v9"] {
        let status = ask(accept, LIST).expect_err(accept);
        assert_eq!((status.code, status.message.as_str(), status.details), (406, message, None));
    }
}

#[test]
fn forms_are_chosen() {
    let table = |version| ObjectForm::Table { version, include: IncludeObjectPolicy::Metadata };
    let form = |accept: &str| ask(accept, LIST).expect(accept).form;
    assert_eq!(form("application/json;as=Table;g=meta.k8s.io;v=v1,application/json"), table(MetaVersion::V1));
    assert_eq!(form("application/json;as=Table;g=meta.k8s.io;v=v1beta1"), table(MetaVersion::V1beta1));
    assert_eq!(form("application/json;as=Nope;g=meta.k8s.io;v=v1,application/json"), ObjectForm::Object);
    let partial = ObjectForm::PartialObjectMetadata { version: MetaVersion::V1 };
    assert_eq!(form("application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"), partial);
    let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
    assert_eq!(form(kubectl), table(MetaVersion::V1));

    let none = QueryParameters::parse("includeObject=None");
    let chosen =
        negotiate(Some(kubectl), None, &none, LIST).expect("a table").with_include_object(&none).expect("a table");
    assert_eq!(chosen.form, ObjectForm::Table { version: MetaVersion::V1, include: IncludeObjectPolicy::None });
    let query = QueryParameters::parse("includeObject=Bogus");
    let bogus = negotiate(Some(kubectl), None, &query, LIST).expect("a table").with_include_object(&query);
    let bogus = bogus.expect_err("a refusal");
    let message = "Unable to convert to Table as requested: includeObject: Invalid value: \"Bogus\": must be 'Metadata', 'Object', 'None', or empty";
    assert_eq!((bogus.code, bogus.message.as_str()), (400, message));
}

#[test]
fn forms_must_fit_what_is_answered() {
    let gv = GroupVersion::new("", "v1");
    let check = |accept: &str, list| {
        let kind = if list { "ConfigMapList" } else { "ConfigMap" };
        ask(accept, LIST).expect(accept).check_form(list, &gv, kind, false)
    };
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let many = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    assert_eq!(check(one, false), Ok(()));
    assert_eq!(check(many, true), Ok(()));
    assert_eq!(
        check(many, false).expect_err("a refusal").message,
        "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"
    );
    assert_eq!(
        check(one, true).expect_err("a refusal").message,
        "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"
    );
}

#[test]
fn media_types_are_chosen_by_quality_and_order() {
    assert_eq!(media("", OBJECT), MediaType::Json);
    assert_eq!(media("*/*", OBJECT), MediaType::Json);
    assert_eq!(media("application/yaml", OBJECT), MediaType::Yaml);
    assert_eq!(media("application/vnd.kubernetes.protobuf,application/json", OBJECT), MediaType::Protobuf);
    assert_eq!(media("application/json,application/vnd.kubernetes.protobuf", OBJECT), MediaType::Json);
    assert_eq!(media("application/json;q=0.5, application/yaml;q=0.9", OBJECT), MediaType::Yaml);
    assert_eq!(media("*/*, application/yaml", OBJECT), MediaType::Yaml);
    assert_eq!(media("text/html,application/xhtml+xml,*/*;q=0.8", OBJECT), MediaType::Json);

    let custom = EndpointRestrictions { custom: true, answer: ResponseKind::Object };
    assert_eq!(media("application/vnd.kubernetes.protobuf,application/json", custom), MediaType::Json);
    assert!(ask("application/vnd.kubernetes.protobuf", custom).is_err());
    assert!(ask("text/plain", custom).expect_err("a refusal").message.starts_with("only the following"));
}

#[test]
fn streams_are_json_or_protobuf() {
    assert_eq!(media("application/json;stream=watch", WATCH), MediaType::Json);
    assert!(ask("application/yaml", WATCH).expect_err("a refusal").message.ends_with("protobuf;stream=watch"));
    assert!(ask("application/json;stream=other", LIST).is_err());
    assert_eq!(
        media("application/vnd.kubernetes.protobuf;stream=watch,application/json;stream=watch", WATCH),
        MediaType::Protobuf
    );
    let protobuf = ask("application/vnd.kubernetes.protobuf,application/json", WATCH).expect("a stream");
    assert_eq!(protobuf.content_type(true), "application/vnd.kubernetes.protobuf;stream=watch");
    let custom = EndpointRestrictions { custom: true, ..WATCH };
    assert_eq!(media("application/vnd.kubernetes.protobuf,application/json", custom), MediaType::Json);
    assert!(ask("application/vnd.kubernetes.protobuf", custom).is_err());
}

#[test]
fn people_get_it_indented() {
    let pretty = |query: &'static str, agent| {
        negotiate(None, Some(agent), &QueryParameters::parse(query), OBJECT).expect("JSON").pretty
    };
    assert!(pretty("pretty=true", "x"));
    assert!(pretty("", "curl/8.0"));
    assert!(pretty("", "Mozilla/5.0 (X11)"));
    assert!(!pretty("pretty=false", "curl/8.0"));
    assert!(!pretty("pretty=0", "curl/8.0"));
    assert!(!pretty("", "kubectl/1.35"));
    assert!(ask("application/json;pretty=1", OBJECT).expect("JSON").pretty);
}

#[test]
fn a_status_is_answered_in_what_is_understood() {
    let plain = |accept: &str| negotiate_plain(Some(accept), None, &QueryParameters::default());
    assert_eq!(plain("application/yaml").map(|chosen| chosen.media), Some(MediaType::Yaml));
    assert_eq!(plain("application/json;sv="), Some(MediaTypeOptions::JSON));
    assert_eq!(plain("text/plain"), None);
    assert_eq!(plain("application/json;as=Table;g=meta.k8s.io;v=v1"), None);
}

#[test]
fn accept_clauses_sort_as_kube_apiserver_sorts_them() {
    // A clause with a type precedes a wildcard before it, whatever their qualities.
    assert_eq!(media("*/*;q=0.9, application/yaml;q=0.5", OBJECT), MediaType::Yaml);
    assert_eq!(media("application/yaml;q=0.5, */*;q=0.9", OBJECT), MediaType::Json);
    assert_eq!(media("application/*;q=0.2,application/yaml;q=0.1", OBJECT), MediaType::Yaml);
    assert_eq!(media("application/yaml;q=0.1,application/vnd.kubernetes.protobuf;q=0.2", OBJECT), MediaType::Protobuf);
    // An invalid quality is zero, and zero is still a choice.
    assert_eq!(media("application/yaml;q= 0.9, application/json;q=0.1", OBJECT), MediaType::Json);
    assert_eq!(media("application/yaml;q=0", OBJECT), MediaType::Yaml);
    assert_eq!(media("*", OBJECT), MediaType::Json);
    assert_eq!(media("application/yaml/", OBJECT), MediaType::Yaml);
}

#[test]
fn accept_parameters_that_cannot_be_met_skip_their_clause() {
    assert_eq!(media("application/yaml;sv=v2, application/json", OBJECT), MediaType::Json);
    assert_eq!(media("application/yaml;sv=v1, application/json", OBJECT), MediaType::Yaml);
    assert_eq!(media("application/yaml;charset=utf-8;unknown=1", OBJECT), MediaType::Yaml);
    assert_eq!(media("application/yaml;stream=watch, application/json", LIST), MediaType::Json);
    assert_eq!(media("application/json;stream=other, application/yaml", LIST), MediaType::Yaml);
    // `as=a=b` and `as=` are not parameters.
    assert_eq!(ask("application/json;as=a=b;g=;v", OBJECT).expect("plain").form, ObjectForm::Object);
    let message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    for accept in ["Application/JSON", "application/json;as=Table", "text/plain", "application/json;sv=v2"] {
        assert_eq!(ask(accept, OBJECT).expect_err(accept).message, message, "{accept}");
    }
    let streams = "only the following media types are accepted: application/json;stream=watch, \
                   application/vnd.kubernetes.protobuf;stream=watch";
    assert_eq!(ask("application/yaml", WATCH).expect_err("a refusal").message, streams);
    assert_eq!(ask("text/plain", WATCH).expect_err("a refusal").message, message);
}
