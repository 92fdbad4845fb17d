use std::{fs, path::PathBuf};

use http::HeaderValue;
use kubewake_config::SecretString;

use super::*;

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn headers(login: &str) -> HeaderMap {
    let value = format!("Basic {}", STANDARD.encode(login));
    [(AUTHORIZATION, HeaderValue::try_from(value).unwrap())].into_iter().collect()
}

fn inline(text: &str) -> Htpasswd {
    Htpasswd { file: None, inline: Some(SecretString::new(text)) }
}

/// The subject that the server derives from this login.
async fn enter(settings: &Htpasswd, login: &str) -> Option<String> {
    server(settings).unwrap().authenticate(&headers(login), PEER).wait().await.ok().flatten()
}

#[tokio::test]
async fn a_client_sends_name_and_password() {
    let settings =
        BasicClientCredentials { username: "ada".into(), password: SecretString::new("pa:ss"), ..Default::default() };
    let auth = build(&BasicAuth::Client(settings)).unwrap();
    assert!(auth.server.is_none());
    let sent = auth.client.unwrap().headers().await.unwrap();
    let [(name, value)] = &sent[..] else { panic!("one header") };
    assert_eq!((name, value.to_str().unwrap()), (&AUTHORIZATION, "Basic YWRhOnBhOnNz"));
    assert!(value.is_sensitive() && !format!("{sent:?}").contains("YWRh"));
}

#[tokio::test]
async fn files_win_over_text_and_lose_their_line_break() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| -> Option<PathBuf> {
        fs::write(folder.path().join(name), text).unwrap();
        Some(folder.path().join(name))
    };
    let settings = BasicClientCredentials {
        username: "text".into(),
        username_file: file("name", "ada\n"),
        password: SecretString::new("text"),
        password_file: file("password", "secret\n"),
    };
    let sent = client(&settings).unwrap().headers().await.unwrap();
    assert_eq!(sent[0].1, format!("Basic {}", STANDARD.encode("ada:secret")));

    let missing = BasicClientCredentials { password_file: Some(folder.path().join("missing")), ..settings };
    let problem = client(&missing).err().unwrap().0;
    assert!(problem.contains("missing: No such file") && !problem.contains("secret"), "{problem}");
}

#[tokio::test]
async fn a_server_knows_plain_sha_and_bcrypt_passwords() {
    let hash = bcrypt::hash("pass", 4).unwrap();
    let apache = hash.replacen("$2b$", "$2y$", 1);
    // printf pass | openssl dgst -binary -sha1 | base64
    let users =
        format!("# users\n\nplain:pass\nsha:{{SHA}}nU4eI71bcnBGqeO0t9tXvY1u5oQ=\nhash:{hash}\napache:{apache}\n");
    let users = inline(&users);
    for name in ["plain", "sha", "hash", "apache"] {
        assert_eq!(enter(&users, &format!("{name}:pass")).await.as_deref(), Some(name));
        assert_eq!(enter(&users, &format!("{name}:wrong")).await, None);
        assert_eq!(enter(&users, &format!("{name}:")).await, None);
    }
    assert_eq!(enter(&users, "nobody:pass").await, None);
}

#[tokio::test]
async fn a_password_may_hold_colons() {
    assert_eq!(enter(&inline("ada:pa:ss"), "ada:pa:ss").await.as_deref(), Some("ada"));
}

#[tokio::test]
async fn the_document_wins_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("htpasswd");
    fs::write(&path, "ada:file\nbob:file\n").unwrap();
    let settings = Htpasswd { file: Some(path), inline: Some(SecretString::new("ada:inline")) };
    assert!(enter(&settings, "ada:inline").await.is_some() && enter(&settings, "bob:file").await.is_some());
    assert!(enter(&settings, "ada:file").await.is_none());
}

#[tokio::test]
async fn what_is_no_basic_authorization_is_refused_without_being_repeated() {
    let server = server(&inline("ada:secret")).unwrap();
    for value in ["", "Basic", "Bearer secret", "Basic ???", "Basic c2VjcmV0", "Basic /////w=="] {
        let headers = [(AUTHORIZATION, HeaderValue::from_str(value).unwrap())].into_iter().collect();
        let error = server.authenticate(&headers, PEER).wait().await.unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
    assert!(server.authenticate(&HeaderMap::new(), PEER).wait().await.is_err());
    // The scheme is case-insensitive, by HTTP.
    let lower = [(AUTHORIZATION, HeaderValue::from_str("basic YWRhOnNlY3JldA==").unwrap())].into_iter().collect();
    assert_eq!(server.authenticate(&lower, PEER).wait().await.unwrap().as_deref(), Some("ada"));
}

#[test]
fn entries_that_cannot_be_checked_are_refused_when_built() {
    for (text, words) in [
        ("ada:x\nbob:$apr1$salt$hunter2", "line 2: only bcrypt"),
        ("bob:{SSHA}hunter2", "line 1: only bcrypt"),
        ("bob:$6$salt$hunter2", "line 1: only bcrypt"),
        ("bob:$2y$05$hunter2", "line 1: the bcrypt hash"),
        ("bob:{SHA}hunter2", "line 1: the value after {SHA}"),
        ("hunter2", "line 1: the colon after the name"),
        ("bob:", "line 1: the password is empty"),
        ("# nobody\n", "no users"),
    ] {
        let problem = build(&BasicAuth::Server(inline(text))).err().unwrap().0;
        assert!(problem.contains(words) && !problem.contains("hunter2"), "{problem}");
    }
}
