//! x
use factum_ingest::*;
use factum_base::*;
fn main(){ for p in std::env::args().skip(1){ let b=std::fs::read(&p).unwrap(); let n=p.rsplit('/').next().unwrap();
 let t=std::time::Instant::now();
 match read_document(n,&b,&Limits::default()){
  Err(e)=>println!("== {n}: REFUSED {} {e}",e.kind()),
  Ok(l)=>{println!("== {n}: {} {:?} {:?} {} chars", l.media,l.encoding,t.elapsed(),l.text.chars().count());
   for w in &l.warnings{println!("   ! {w}");}
   println!("{}", l.text.chars().take(700).collect::<String>());
   let n=l.text.chars().count() as u32;
   for k in [0,n/4,n/2,n-1]{ println!("   {k}: {}", l.layout.locate(&l.text, Span::new(k,(k+3).min(n))));}
  }}}}
