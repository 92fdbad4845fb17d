use super::*;

#[test]
fn an_endpoint_without_a_port_or_with_a_port_in_use_is_named() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    assert!(bind("localhost").unwrap_err().to_string().contains("missing port"));
    let taken = bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _held = bind(&taken.to_string()).unwrap();
    let error = bind(&taken.to_string()).unwrap_err().to_string();
    assert!(error.contains(&taken.to_string()) && error.contains("in use"), "{error}");
}
