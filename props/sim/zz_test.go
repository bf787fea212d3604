package sim
import ("testing";"unsafe";"math/rand/v2")
func TestSizes(t *testing.T){
 var w World
 t.Log("world",unsafe.Sizeof(w),"message",unsafe.Sizeof(message{}),"monitor",unsafe.Sizeof(w.monitor),"action",unsafe.Sizeof(Action{}),"client",unsafe.Sizeof(client{}),"counts",unsafe.Sizeof(w.counts),"cs",unsafe.Sizeof(ClientState{}),"store",unsafe.Sizeof(StoreState{}),"mismatch",unsafe.Sizeof(Mismatch{}))
}
func gens(n int, p Profile) (out []Schedule) {
 for i:=range n { src:=rand.NewPCG(1,uint64(i)); cfg:=RandomConfig(src); w,err:=NewWorld(cfg,Builtin(),Options{Monitor:true,Lockstep:true}); if err!=nil{panic(err)}
  a:=Generate(src,&p,&w,120,nil); if w.Violated()!=0 {panic(w.First().Describe(Names()))}
  out=append(out,Schedule{Config:cfg,Actions:a}) }
 return }
func benchRun(b *testing.B, opts Options, calm bool){
 ss:=gens(50,func() Profile {p:=Chaos(); p.Calm=calm; return p}())
 n:=0; b.ReportAllocs()
 for b.Loop(){ for i:=range ss { s:=&ss[i]; if opts.Trace!=nil {opts.Trace.Events=opts.Trace.Events[:0]}; w:=newWorld(newSetup(s.Config,Builtin(),opts)); for j:=range s.Actions { w.Apply(&s.Actions[j]) }; n+=len(s.Actions)} }
 b.ReportMetric(float64(n)/b.Elapsed().Seconds(),"actions/s")
}
func BenchmarkA(b *testing.B){ benchRun(b,Options{},false)}
func BenchmarkB(b *testing.B){ benchRun(b,Options{Monitor:true,Trace:&Trace{}},false)}
func BenchmarkC(b *testing.B){ benchRun(b,Options{},true)}
