//! Our engine against llama.cpp's own server, on one machine in one run and by turns: the same model, the same prompts,
//! greedy, the same most tokens.
//!
//! `FACTUM_LLAMA_SERVER=llama-server FACTUM_TEST_MODEL=model.gguf OMP_WAIT_POLICY=passive \
//!     cargo bench -p factum-model --features local --bench llama_server`, with `FACTUM_ROUNDS` for more than one.

mod common;

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use factum_model::openai::{OpenAiGenerator, OpenAiOptions};

use common::{CONTEXT, Clock, NEW_TOKENS, NODES, ask, ours, report};

/// A server that ends with this.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(program: &Path, model: &Path, slots: usize) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let context = CONTEXT as usize * slots;
        let child = Command::new(program)
            .arg("-m")
            .arg(model)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .args([
                "-t",
                "2",
                "-np",
                &slots.to_string(),
                "-c",
                &context.to_string(),
            ])
            .args(["--alias", "bench"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let server = Self { child, port };
        server.wait();
        server
    }

    /// Until it has loaded the model and answers.
    fn wait(&self) {
        use std::io::{Read, Write};
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_mins(2) {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                let patience = Some(Duration::from_secs(2));
                stream.set_read_timeout(patience).expect("a time");
                let mut reply = String::new();
                let asked = stream.write_all(b"GET /health HTTP/1.0\r\nConnection: close\r\n\r\n");
                let read = stream.read_to_string(&mut reply);
                if asked.is_ok() && read.is_ok() && reply.contains(" 200 ") {
                    return;
                }
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the server does not answer");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn theirs(program: &Path, model: &Path, slots: usize, grounded: bool) {
    let server = Server::start(program, model, slots);
    let url = format!("http://127.0.0.1:{}/v1", server.port);
    let mut options = OpenAiOptions::new(url.parse().expect("a URL"), "bench");
    options.concurrency = slots;
    let generator = OpenAiGenerator::new(&options).expect("a generator");
    let clock = Clock::of(server.child.id().to_string());
    let (prompt, new) = ask(&generator, grounded);
    let kind = if grounded { "json_schema" } else { "free" };
    report(
        &format!("llama-server, {slots} slot(s), {kind}"),
        prompt,
        new,
        &clock,
    );
}

fn main() {
    let variable = std::env::var_os;
    let (Some(program), Some(model)) = (
        variable("FACTUM_LLAMA_SERVER"),
        variable("FACTUM_TEST_MODEL"),
    ) else {
        println!("skipped: FACTUM_LLAMA_SERVER and FACTUM_TEST_MODEL name no server and model");
        return;
    };
    let (program, model) = (Path::new(&program), Path::new(&model));
    let rounds = std::env::var("FACTUM_ROUNDS").ok();
    let rounds = rounds.and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("{NODES} nodes, at most {NEW_TOKENS} new tokens each, 2 threads");
    for round in 1..=rounds {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        println!("round {round}, load {load}");
        for (sequences, grounded) in [(1, false), (4, false), (4, true)] {
            theirs(program, model, sequences, grounded);
            let sequences = u32::try_from(sequences).expect("a small number");
            ours(model, sequences, true, grounded);
        }
    }
}
