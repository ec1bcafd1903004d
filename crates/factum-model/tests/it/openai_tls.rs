//! Certificates: one that nobody vouches for is refused at once, one that the system trusts is accepted.

use std::process::Command;
use std::sync::Arc;

use factum_model::openai::OpenAiGenerator;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::collect::{ask, request};
use crate::fake_server::{FakeServer, answer, options};

const URL: &str = "FACTUM_TEST_TLS_URL";

// A certificate of its own, as PEM, and what serves it.
fn self_signed() -> (String, TlsAcceptor) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (made.cert.pem(), TlsAcceptor::from(Arc::new(config)))
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused_at_once() {
    let (_, tls) = self_signed();
    let (other, _) = self_signed();
    let server = FakeServer::start_tls(tls, |_, _| answer("A hose.")).await;
    let said = ask_in_a_child(&server, &other).await;
    assert!(said.contains("the error: Certificate("), "{said}");
    assert_eq!((server.connections(), server.requests()), (1, 0));
}

#[tokio::test]
async fn a_certificate_that_the_system_trusts_is_accepted() {
    let (pem, tls) = self_signed();
    let server = FakeServer::start_tls(tls, |_, _| answer("A hose.")).await;
    let said = ask_in_a_child(&server, &pem).await;
    assert!(said.contains("the answer: A hose."), "{said}");
    assert_eq!(server.requests(), 1);
}

// Which roots the system has is said by the environment, so it takes a process of its own.
async fn ask_in_a_child(server: &FakeServer, roots: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("roots.pem");
    std::fs::write(&path, roots).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args([
            "--exact",
            "openai_tls::child_asks_the_url_it_was_given",
            "--nocapture",
        ])
        .env("SSL_CERT_FILE", &path)
        .env_remove("SSL_CERT_DIR")
        .env(URL, format!("https://{}/v1", server.address));
    let output = tokio::task::spawn_blocking(move || child.output().unwrap())
        .await
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

// Not a claim of its own: the other half of the tests above.
#[tokio::test]
async fn child_asks_the_url_it_was_given() {
    let Ok(url) = std::env::var(URL) else {
        return;
    };
    let generator = OpenAiGenerator::new(&options(&url)).unwrap();
    match ask(&generator, request("Why?")).await {
        Ok(generation) => println!("the answer: {}", generation.text),
        Err(error) => println!("the error: {error:?}"),
    }
}
