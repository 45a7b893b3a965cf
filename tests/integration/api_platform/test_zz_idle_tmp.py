import time, os
def test_idle(api, admin):
    pid = api.process.pid
    def cpu():
        f=open(f"/proc/{pid}/stat").read().split(); return (int(f[13])+int(f[14]))/os.sysconf("SC_CLK_TCK")
    time.sleep(3); a=cpu(); time.sleep(10); b=cpu()
    rss=[l for l in open(f"/proc/{pid}/status") if "VmRSS" in l]
    t=time.time()
    for _ in range(300): admin.get("/api/v1/me")
    print("IDLE cpu s/10s", b-a, rss, "me/s", 300/(time.time()-t))
