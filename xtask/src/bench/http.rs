//! A minimal HTTP client for the pages of the sink and of the operator.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use anyhow::{Context, ensure};
use serde_json::Value;

pub(crate) fn get(address: &str, path: &str) -> anyhow::Result<Value> {
    serde_json::from_str(&text(address, path)?).with_context(|| format!("GET {path} did not return JSON"))
}

pub(crate) fn text(address: &str, path: &str) -> anyhow::Result<String> {
    call(address, "GET", path, "", &[])
}

/// Posts bytes and returns the JSON response.
pub(crate) fn post(address: &str, path: &str, body: &[u8]) -> anyhow::Result<Value> {
    serde_json::from_str(&call(address, "POST", path, "", body)?)
        .with_context(|| format!("POST {path} did not return JSON"))
}

/// Posts JSON and returns the JSON response.
pub(crate) fn post_json(address: &str, path: &str, body: &[u8]) -> anyhow::Result<Value> {
    let answer = call(address, "POST", path, "content-type: application/json\r\n", body)?;
    serde_json::from_str(&answer).with_context(|| format!("POST {path} did not return JSON"))
}

fn call(address: &str, method: &str, path: &str, headers: &str, body: &[u8]) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address).with_context(|| format!("failed to connect to {address}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the response has no body")?;
    let status = head.lines().next().unwrap_or_default();
    ensure!(status.contains(" 200 "), "{method} {path} failed with status {status}: {body}");
    Ok(body.to_owned())
}
