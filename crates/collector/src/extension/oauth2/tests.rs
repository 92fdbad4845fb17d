use kubewake_config::{SecretString, model::ClientTls};

use super::*;
use crate::net::testing::{Authority, Backend, Reply, Seen, Speaks};

fn settings(backend: &Backend) -> OAuth2Client {
    OAuth2Client {
        client_id: "the id".into(),
        client_id_file: None,
        client_secret: SecretString::new("hunter2/+"),
        client_secret_file: None,
        token_url: format!("http://{}/token", backend.address).into(),
        scopes: vec!["read".into(), "write".into()],
        endpoint_params: vec![("audience".into(), "a&b".into())],
        timeout: Some(Duration::from_secs(5)),
        expiry_buffer: Duration::from_secs(60),
        tls: ClientTls::default(),
    }
}

fn token(number: usize, life: u64) -> Reply {
    let body = format!(r#"{{"access_token":"t{number}","token_type":"bearer","expires_in":{life}}}"#);
    Reply::http(200, &[("content-type", "application/json")], body)
}

/// An endpoint that numbers its tokens.
async fn endpoint(life: u64) -> Backend {
    Backend::start(Speaks::Http1, None, move |_, before| token(before, life)).await
}

fn client(settings: &OAuth2Client, min_age: Duration) -> OAuth2Auth {
    OAuth2Auth(TokenProvider::new(settings, min_age).unwrap())
}

async fn header(client: &OAuth2Auth) -> Result<String, AuthError> {
    let sent = client.headers().await?;
    assert!(sent[0].0 == AUTHORIZATION && sent[0].1.is_sensitive());
    Ok(sent[0].1.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_token_is_fetched_once_and_used_until_it_ends() {
    let backend = endpoint(3600).await;
    let client = client(&settings(&backend), MIN_REJECTED_TOKEN_AGE);
    assert_eq!(header(&client).await.unwrap(), "Bearer t0");
    assert_eq!(header(&client).await.unwrap(), "Bearer t0");

    let seen = backend.only();
    assert_eq!(seen.uri, "/token");
    assert_eq!(seen.header("content-type"), "application/x-www-form-urlencoded");
    assert_eq!(&seen.body[..], b"grant_type=client_credentials&scope=read+write&audience=a%26b");
    // Encoded as in Go's oauth2: escaped, then in the basic header.
    let login = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, "the+id:hunter2%2F%2B");
    assert_eq!(seen.header("authorization"), format!("Basic {login}"));
}

#[tokio::test]
async fn many_who_ask_at_once_cost_one_request() {
    let backend = endpoint(3600).await;
    let client = Arc::new(client(&settings(&backend), MIN_REJECTED_TOKEN_AGE));
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { header(&client).await.unwrap() })
        })
        .collect();
    for answer in asking {
        assert_eq!(answer.await.unwrap(), "Bearer t0");
    }
    assert_eq!(backend.seen().len(), 1);
}

#[tokio::test]
async fn a_token_near_its_end_is_renewed_and_serves_while_that_fails() {
    // The token lives for 30 s, but must be renewed 60 s before its end: each call requests one.
    let script = |_: &Seen, before: usize| match before {
        0 | 1 => token(before, 30),
        _ => Reply::http(500, &[], "hunter2"),
    };
    let backend = Backend::start(Speaks::Http1, None, script).await;
    let client = client(&settings(&backend), MIN_REJECTED_TOKEN_AGE);
    assert_eq!(header(&client).await.unwrap(), "Bearer t0");
    assert_eq!(header(&client).await.unwrap(), "Bearer t1");
    assert_eq!(header(&client).await.unwrap(), "Bearer t1");
    assert_eq!(backend.seen().len(), 3);
    // The endpoint failed just now and is not asked.
    assert_eq!(header(&client).await.unwrap(), "Bearer t1");
    assert_eq!(backend.seen().len(), 3);
}

#[tokio::test]
async fn a_rejected_token_is_forgotten_unless_it_is_new() {
    let backend = endpoint(3600).await;
    let patient = client(&settings(&backend), MIN_REJECTED_TOKEN_AGE);
    assert_eq!(header(&patient).await.unwrap(), "Bearer t0");
    patient.invalidate();
    assert_eq!(header(&patient).await.unwrap(), "Bearer t0");

    let eager = client(&settings(&backend), Duration::ZERO);
    assert_eq!(header(&eager).await.unwrap(), "Bearer t1");
    eager.invalidate();
    assert_eq!(header(&eager).await.unwrap(), "Bearer t2");
}

#[tokio::test]
async fn an_endpoint_that_wants_the_secret_in_the_form_gets_it_there() {
    let script = |seen: &Seen, before: usize| match seen.header("authorization") {
        "" => token(before, 1),
        _ => Reply::http(401, &[("content-type", "application/json")], r#"{"error":"invalid_client"}"#),
    };
    let backend = Backend::start(Speaks::Http1, None, script).await;
    let client = client(&settings(&backend), MIN_REJECTED_TOKEN_AGE);
    assert_eq!(header(&client).await.unwrap(), "Bearer t1");
    let form = String::from_utf8(backend.seen()[1].body.to_vec()).unwrap();
    assert!(form.ends_with("&client_id=the+id&client_secret=hunter2%2F%2B"), "{form}");
    // The accepted form of the secret is remembered.
    assert_eq!(header(&client).await.unwrap(), "Bearer t2");
    assert_eq!(backend.seen().len(), 3);
}

#[tokio::test]
async fn errors_say_what_the_endpoint_said_and_hold_no_secret() {
    let json = |status, body: &str| Reply::http(status, &[("content-type", "application/json")], body);
    for (reply, words) in [
        (
            json(401, r#"{"error":"invalid_client","error_description":"hunter2 is wrong"}"#),
            "HTTP 401 (invalid_client)",
        ),
        (json(400, r#"{"error":"bad hunter2"}"#), "HTTP 400"),
        (json(503, "hunter2"), "HTTP 503"),
        (json(200, r#"{"access_token":""}"#), "no token"),
        (json(200, "hunter2"), "no token"),
        (json(302, ""), "HTTP 302"),
    ] {
        let backend = Backend::start(Speaks::Http1, None, move |_, _| reply.clone()).await;
        let error = header(&client(&settings(&backend), MIN_REJECTED_TOKEN_AGE)).await.unwrap_err().0;
        assert!(error.contains(words) && error.contains("/token") && !error.contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn a_request_goes_on_when_the_one_who_asked_has_given_up() {
    let backend = endpoint(3600).await;
    let client = client(&settings(&backend), MIN_REJECTED_TOKEN_AGE);
    {
        let mut asking = client.headers();
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(asking.as_mut().poll(cx))).await.is_pending());
    }
    let token = async {
        while client.0.fresh_token().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), token).await.unwrap();
    assert_eq!(header(&client).await.unwrap(), "Bearer t0");
    assert_eq!(backend.seen().len(), 1);
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = settings(&endpoint(1).await);
    settings.token_url = format!("http://{}/token", listener.local_addr().unwrap()).into();
    settings.timeout = Some(Duration::from_millis(100));
    let error = header(&client(&settings, MIN_REJECTED_TOKEN_AGE)).await.unwrap_err().0;
    assert!(error.contains("no token within 100ms"), "{error}");
}

#[tokio::test]
async fn the_token_endpoint_may_have_a_private_root_and_the_secret_a_file() {
    let ca = Authority::new();
    let tls = crate::net::tls::server_config(&ca.server("127.0.0.1"), &[b"http/1.1"]).unwrap();
    let backend = Backend::start(Speaks::Http1, Some(tls), |_, before| token(before, 3600)).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "from file\n").unwrap();
    let mut settings = settings(&backend);
    settings.token_url = format!("https://{}/token", backend.address).into();
    settings.client_secret_file = Some(folder.path().join("secret"));
    settings.tls = ClientTls { ca: Some(Authority::new().root()), ..ClientTls::default() };
    assert!(header(&client(&settings, MIN_REJECTED_TOKEN_AGE)).await.unwrap_err().0.contains("TLS"));

    settings.tls = ClientTls { ca: Some(ca.root()), ..ClientTls::default() };
    let auth = build(&settings).unwrap();
    assert!(auth.server.is_none());
    auth.client.unwrap().headers().await.unwrap();
    assert!(backend.only().header("authorization").starts_with("Basic "));
}
