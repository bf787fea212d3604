package sim
import ("testing";"math/rand/v2";"fmt";"fencepost/model")
func TestZZWide(t *testing.T){
 viol := map[string]int{}; n,posed:=0,0
 for _,p := range []Profile{Chaos(), Raw()} {
 for i := range 30000 {
  src := rand.NewPCG(77,uint64(i)); cfg := RandomConfig(src)
  if i%2==0 { cfg.Clients = 4 }
  w,_ := NewWorld(cfg, Builtin(), Options{Monitor:true,Lockstep:true})
  Generate(src,&p,&w,80,nil)
  n++
  posed += int(w.Counts().Posed)
  if w.Violated()!=0 { k := fmt.Sprint(p.Name, w.Violated()); viol[k]++; if viol[k]<4 { fmt.Println(i,p.Name,cfg.Clients, cfg.Lease, cfg.Messages, w.First().Describe(Names()), model.Availability) } }
 }}
 fmt.Println(n, viol, posed)
}
