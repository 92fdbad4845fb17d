use std::fs;

use http::{HeaderValue, header::AUTHORIZATION};

use super::*;

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn settings(tokens: &[&str]) -> BearerTokenAuth {
    BearerTokenAuth {
        header: "Authorization".into(),
        scheme: "Bearer".into(),
        tokens: tokens.iter().map(|token| SecretString::new(*token)).collect(),
        file: None,
    }
}

fn enters(settings: &BearerTokenAuth, header: &'static str, value: &str) -> bool {
    let headers = [(HeaderName::from_static(header), HeaderValue::from_str(value).unwrap())].into_iter().collect();
    matches!(server(settings).unwrap().authenticate(&headers, PEER), AuthDecision::Now(Ok(_)))
}

#[tokio::test]
async fn a_client_sends_the_first_token_behind_the_scheme() {
    let sent = client(&settings(&["one", "two"])).unwrap().headers().await.unwrap();
    assert_eq!(sent, [(AUTHORIZATION, HeaderValue::from_static("Bearer one"))]);
    assert!(sent[0].1.is_sensitive());

    let bare = BearerTokenAuth { scheme: String::new(), header: "X-Api-Key".into(), ..settings(&["one"]) };
    let sent = client(&bare).unwrap().headers().await.unwrap();
    assert_eq!(sent, [(HeaderName::from_static("x-api-key"), HeaderValue::from_static("one"))]);
}

#[test]
fn a_server_takes_any_of_the_tokens_and_nothing_else() {
    let settings = settings(&["one", "two"]);
    assert!(enters(&settings, "authorization", "Bearer one"));
    assert!(enters(&settings, "authorization", "Bearer two"));
    for wrong in ["Bearer three", "one", "Basic one", "Bearer one ", "Bearer on", "Bearer", ""] {
        assert!(!enters(&settings, "authorization", wrong), "{wrong}");
    }
    assert!(!enters(&settings, "x-api-key", "Bearer one"));
}

#[test]
fn a_file_has_a_token_on_each_line_and_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    fs::write(&path, "one for the first\n\n  two\n").unwrap();
    let settings = BearerTokenAuth { file: Some(path), ..settings(&["text"]) };
    assert!(enters(&settings, "authorization", "Bearer one") && enters(&settings, "authorization", "Bearer two"));
    assert!(!enters(&settings, "authorization", "Bearer text"));
}

#[test]
fn without_a_token_it_cannot_be_built() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    fs::write(&path, "\n").unwrap();
    assert!(build(&settings(&[])).is_err() && build(&settings(&[""])).is_err());
    let problem = build(&BearerTokenAuth { file: Some(path), ..settings(&[]) }).err().unwrap().0;
    assert!(problem.contains("tokens is empty"), "{problem}");
    let unsendable = build(&settings(&["hunter2\n"])).err().unwrap().0;
    assert!(!unsendable.contains("hunter2"), "{unsendable}");
}

#[test]
fn refusals_name_the_header_and_repeat_nothing() {
    let server = server(&settings(&["hunter2"])).unwrap();
    let wrong = [(AUTHORIZATION, HeaderValue::from_static("Bearer hunter3"))].into_iter().collect();
    for headers in [HeaderMap::new(), wrong] {
        let AuthDecision::Now(Err(error)) = server.authenticate(&headers, PEER) else { panic!("it is known at once") };
        let error = error.to_string();
        assert!(error.contains("authorization") && !error.contains("hunter"), "{error}");
    }
}
