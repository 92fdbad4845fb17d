//! Paths, queries and headers.

use crate::{
    raw::exchange,
    victim::{JSON, MAPS, Victim, soon},
};

/// The status code of an HTTP/1.1 response.
fn code(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn strange_paths_are_answered() {
    let victim = Victim::new().await;
    for path in [
        "/",
        "//",
        "/api",
        "/api/",
        "/api//v1",
        "/apis/a/b/c/d/e/f/g/h",
        "/api/v1/namespaces//configmaps",
        "/api/v1/namespaces/default/configmaps/precious/status/more/and/more",
        "/api/v1/watch",
        "/api/v1/watch/namespaces?timeoutSeconds=1",
        "/%",
        "/%zz",
        "/%00",
        "/api/v1/%00",
        "/api/v1/namespaces/default/configmaps/%00",
        "/api/v1/namespaces/%2e%2e/configmaps",
        "/api/v1/namespaces/default/configmaps/a%2Fb",
        "/api/v1/namespaces/default/configmaps/%ff%fe",
        "/api/v1/namespaces/default/configmaps/%F0%9F%A6%80",
        "/api/v1/namespaces/default/configmaps/..",
        "/../../etc/passwd",
        "/apis/apps/v1/namespaces/default/deployments/x/scale/y",
        "/openapi/v3/../v2",
        "/openapi/v3/apis/nope/v9",
        "/api/v1/namespaces/default/pods/p/log?container=%00",
        "/api/v1/namespaces/default/pods/p/exec?command=x",
        "/api/v1/nodes/n/proxy/metrics",
        "/healthz/nope",
        "/readyz/",
        "/version/",
        "/metrics/x",
        "/debug/pprof",
        "/api/v1/namespaces/default/configmaps?",
        "/api/v1/namespaces/default/configmaps?&&&===&",
        "/logs",
        "/swagger.json",
    ] {
        let answer = victim.call("GET", path, "", "").await;
        assert!((200..500).contains(&answer.code) || answer.code == 503, "{path}: {answer:?}");
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FROBNICATE"] {
            if method == "DELETE" && path.starts_with(MAPS) && !path.contains("/configmaps/") {
                continue;
            }
            let answer = victim.call(method, path, JSON, "{}").await;
            assert!((200..500).contains(&answer.code) || answer.code == 503, "{method} {path}: {answer:?}");
        }
    }
    victim.ends_well().await;
}

#[tokio::test]
async fn options_out_of_range_are_refused_or_have_no_effect() {
    let victim = Victim::new().await;
    let (max, more, min) = ("9223372036854775807", "9223372036854775808", "-9223372036854775808");
    for number in [max, more, min, "-1", "0", "1e3", "0x10", "", " 1", "٣", "NaN", "18446744073709551616"] {
        let number: String = number.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for option in ["limit", "timeoutSeconds", "resourceVersion", "gracePeriodSeconds"] {
            let answer = victim.call("GET", &format!("{MAPS}?{option}={number}"), "", "").await;
            assert!((200..500).contains(&answer.code) || answer.code == 504, "{option}={number}: {answer:?}");
        }
        for query in [
            format!("resourceVersion={number}&resourceVersionMatch=Exact"),
            format!("resourceVersion={number}&resourceVersionMatch=NotOlderThan"),
            format!("limit=1&continue={number}"),
        ] {
            let answer = victim.call("GET", &format!("{MAPS}?{query}"), "", "").await;
            assert!((200..500).contains(&answer.code) || answer.code == 504, "{query}: {answer:?}");
        }
        let delete = format!("{MAPS}/nobody?gracePeriodSeconds={number}&orphanDependents=maybe&propagationPolicy=%00");
        victim.refuses("DELETE", &delete, "", "").await;
        let get =
            victim.call("GET", &format!("{MAPS}/precious?resourceVersion={number}&pretty={number}"), "", "").await;
        // kube-apiserver's message about an invalid version.
        let no_number = get.body["message"].as_str().is_some_and(|message| message.contains("strconv.ParseUint"));
        assert!((200..500).contains(&get.code) || get.code == 504 || no_number, "{get:?}");
    }
    victim.ends_well().await;
}

#[tokio::test]
async fn watches_with_any_time_limit_begin() {
    let victim = Victim::new().await;
    for seconds in ["9223372036854775807", "99999999999", "1"] {
        let path = format!("{MAPS}?watch=1&timeoutSeconds={seconds}");
        let answer = soon(victim.client.send(crate::raw::request("GET", &path, "", ""))).await.unwrap();
        assert_eq!(answer.status(), 200);
        let mut body = answer.into_body();
        let first = soon(http_body_util::BodyExt::frame(&mut body)).await.unwrap().unwrap();
        assert!(first.into_data().unwrap().starts_with(br#"{"type":"ADDED""#));
    }
    victim.ends_well().await;
}

#[tokio::test]
async fn selectors_may_be_long_but_not_wrong() {
    let victim = Victim::new().await;
    let long = |length: usize| "a,".repeat(length / 2 - 1) + "a";
    assert_eq!(victim.call("GET", &format!("{MAPS}?labelSelector={}", long(60_000)), "", "").await.code, 200);
    for (length, expected) in [(70_000, 414), (1 << 20, 431)] {
        let longer = format!("GET {MAPS}?labelSelector={} HTTP/1.1\r\nHost: x\r\n\r\n", long(length));
        let answer = soon(exchange(&victim.server, longer.as_bytes())).await;
        assert_eq!(code(&answer), expected, "{answer:.300}");
    }
    // Over HTTP/2 the path is one of many headers. This client cannot send a longer one.
    let mut longer = crate::raw::request("GET", &format!("{MAPS}?labelSelector={}", long(65_000)), "", "");
    longer.headers_mut().insert("x-more", "y".repeat(1000).parse().unwrap());
    assert_eq!(soon(victim.client.send(longer)).await.unwrap().status(), 431);
    let client = crate::raw::Http2::new(&victim.server).await;
    for selector in [
        "(",
        "a in (",
        "a in ()",
        "!",
        "!!a",
        "a==b==c",
        "a notin",
        ",,",
        "a>b",
        "%00",
        "%ff",
        "a=b,",
        "=b",
        "a in (b,c",
        "a=%22",
        "🦀=1",
    ] {
        let selector: String = selector.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for kind in ["labelSelector", "fieldSelector"] {
            for verb in ["GET", "DELETE"] {
                let (code, body) = soon(client.call(verb, &format!("{MAPS}?{kind}={selector}%26"), "", "")).await;
                assert!(code == 400, "{kind}={selector}: {code} {body:?}");
            }
        }
    }
    let deep = format!("{}a{}", "(".repeat(20_000), ")".repeat(20_000));
    assert_eq!(soon(client.call("GET", &format!("{MAPS}?labelSelector={deep}"), "", "")).await.0, 400);
    victim.ends_well().await;
}

#[tokio::test]
async fn continue_tokens_of_others_are_refused() {
    let victim = Victim::new().await;
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    for token in [
        r#"{"v":"meta.k8s.io/v1","rv":99999999999999999999,"start":"x"}"#,
        r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../../../x"}"#,
        r#"{"v":"v2","rv":1,"start":"x"}"#,
        "[]",
        "{}",
        "\0",
        "",
    ] {
        for token in [URL_SAFE_NO_PAD.encode(token), token.bytes().map(|byte| format!("%{byte:02x}")).collect()] {
            if token.is_empty() {
                continue;
            }
            let answer = victim.refuses("GET", &format!("{MAPS}?limit=1&continue={token}"), "", "").await;
            assert!(matches!(answer.code, 400 | 410), "{token}: {answer:?}");
        }
    }
    victim.ends_well().await;
}

#[tokio::test]
async fn malformed_http_is_refused() {
    let victim = Victim::new().await;
    let many: String = (0..5000).map(|number| format!("X-{number}: y\r\n")).collect();
    let huge = format!("X: {}\r\n", "y".repeat(2 << 20));
    for request in [
        "GET\r\n\r\n".to_owned(),
        "\0\0\0\0\r\n\r\n".to_owned(),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n"),
        format!("GET / HTTP/1.1\r\nHost: x\r\n{huge}\r\n"),
        format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(2 << 20)),
        format!("POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
        format!("POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n"),
        format!("POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        format!("POST {MAPS} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        format!("POST {MAPS} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"),
        "GET /\u{7f} HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: x\r\nA\0B: c\r\n\r\n".to_owned(),
    ] {
        let answer = soon(exchange(&victim.server, request.as_bytes())).await;
        let code = code(&answer);
        // Some requests are not HTTP, so that there is no response.
        assert!(answer.is_empty() || (400..500).contains(&code), "{request:.80}: {answer:.200}");
    }
    victim.ends_well().await;
}

#[tokio::test]
async fn headers_that_lie_are_refused_or_have_no_effect() {
    let victim = Victim::new().await;
    for headers in [
        "Authorization: Bearer \u{ff}\u{fe}",
        "Authorization: Bearer a.b.c",
        "Authorization: Bearer ",
        "Authorization: Basic xxx",
        "Accept: application/json;as=Table;g=meta.k8s.io;v=v9",
        "Accept: */*;q=nope",
        "Accept: text/html",
        "Accept: ;;;,,,/",
        "Accept-Encoding: gzip;q=0",
        "Impersonate-User: ",
        "Impersonate-Group: x",
        "Impersonate-User: x\r\nImpersonate-Extra-%zz: y",
        "Traceparent: 00-zz-zz-zz",
        "Traceparent: 00-00000000000000000000000000000000-0000000000000000-ff",
        "Tracestate: \u{e9}=,,,=",
        "Baggage: ====;;;",
        "Audit-Id: \u{e9}",
        "User-Agent: \u{1F980}",
        "Expect: 100-continue",
        "Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Key: x",
        "Range: bytes=0-",
        "If-Match: x",
        "Host: y",
        "Content-Encoding: gzip",
        "X-Remote-User: admin",
    ] {
        let request = format!("GET {MAPS}/precious HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n\r\n");
        let answer = soon(exchange(&victim.server, request.as_bytes())).await;
        assert!((200..500).contains(&code(&answer)), "{headers}: {answer:.300}");
    }
    victim.ends_well().await;
}
