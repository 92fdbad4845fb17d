//! Secrets are in no message and in no `Debug` output.

#![allow(clippy::unwrap_used, clippy::panic)]

use kubewake_config::{FixedSources, load};

/// Every field that holds a secret, each with `s3cret` in its value.
const DOCUMENT: &str = "
receivers:
  otlp:
    protocols:
      grpc: {tls: {cert_pem: s3cret-cert, key_pem: s3cret-key}}
      http:
        response_headers: {x: s3cret}
        tls:
          cert_file: /c
          key_pem: |
            -----BEGIN PRIVATE KEY-----
            s3cret
            -----END PRIVATE KEY-----
exporters:
  otlp: {endpoint: 'a:1', headers: {authorization: s3cret, x: '${env:SECRET}'}, tls: {ca_pem: s3cret}}
  otlphttp: {endpoint: 'http://a', headers: [{name: x, value: s3cret}]}
extensions:
  basicauth: {client_auth: {username: u, password: s3cret}}
  basicauth/in: {htpasswd: {inline: 'u:s3cret'}}
  bearertokenauth: {token: '${file:token}'}
  bearertokenauth/many: {tokens: [s3cret, s3cret]}
  oauth2client: {client_id: a, client_secret: s3cret, token_url: 'http://t'}
service:
  pipelines: {traces: {receivers: [otlp], exporters: [otlp, otlphttp]}}
";

fn sources() -> FixedSources {
    FixedSources::new().with_env("SECRET", "s3cret").with_file("token", "s3cret")
}

#[test]
fn a_document_prints_none() {
    let loaded = load(DOCUMENT, &sources()).unwrap_or_else(|errors| panic!("{errors}"));
    let printed = format!("{loaded:?} {:#?}", loaded.document);
    assert!(printed.contains("***"));
    assert!(!printed.contains("s3cret"), "{printed}");
}

/// Inserts an error at every position of the document, also between a secret and its name.
#[test]
fn an_error_shows_none_wherever_it_is() {
    let sources = sources();
    for (at, _) in DOCUMENT.char_indices() {
        for put in ["[", "\n", "'", "x: ", "5"] {
            let mut text = DOCUMENT.to_owned();
            text.insert_str(at, put);
            if let Err(errors) = load(&text, &sources) {
                let message = format!("{errors} {errors:?}");
                assert!(!message.contains("s3cret"), "{put:?} at {at}:\n{errors}");
            }
        }
    }
}

/// Puts an error beside each secret, on the same line.
#[test]
fn an_error_shows_none_of_its_neighbours() {
    let broken = DOCUMENT.replace('}', ", colour: red}").replace("authorization:", "'bad name':");
    let errors = load(&broken, &sources()).unwrap_err();
    assert!(errors.problems().len() > 10, "{errors}");
    assert!(!format!("{errors} {errors:?}").contains("s3cret"), "{errors}");
}

/// A value of the wrong type in a secret field is refused without being shown.
#[test]
fn a_secret_of_the_wrong_type_is_not_shown() {
    for value in ["[s3cret]", "{a: s3cret}", "{a: '${env:SECRET}'}"] {
        for field in ["token", "tokens", "scheme"] {
            let text = format!("extensions:\n  bearertokenauth:\n    {field}: {value}\n");
            let errors = load(&text, &sources()).unwrap_err().to_string();
            assert!(field == "scheme" || !errors.contains("s3cret"), "{errors}");
        }
    }
}
